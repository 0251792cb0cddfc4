/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then
 * handed to the others; so all holders get the same bits.
 *
 * Where the holders of the contributions form groups that each want all of the value, an all-reduce
 * does both at once (all_reduce.c). Where the groups of all parts are the same devices, the parts
 * are one reduce-scatter, or one reduce when all lie at one device (reduce_scatter.c). The rest is
 * reduced by messages (messages.c).
 */
#ifndef RESHARD_REDUCE_REDUCE_H
#define RESHARD_REDUCE_REDUCE_H

#include "reshard/senders/balance_senders.h"
#include "reshard/devices.h"

/* A reduction that no collective does. */
typedef struct Reduction {
    int task;
    Devices reducers; // those that want the value and hold a contribution, or else all that want it
    bool holds;       // the reducers hold contributions
    // by reducer, if they hold contributions: elements that are complete there first
    int64_t *shares;
} Reduction;

typedef Array(Reduction) Reductions;

/* Numbers of tasks, bucket by bucket. */
typedef Array(int) Tasks;

/* ---- all-reduces ---- */

/* Appends the all-reduces among the reductions of these tasks; the result has the tasks that are
 * left. */
Tasks add_all_reduces(PlanBuilder *planner, const Tasks *tasks);

/* Returns the group of one holder of each contribution, in ascending order: those that come at
 * place `replica` among the holders. */
Devices holder_group(PlanBuilder *planner, const Task *task, int replica);

/* ---- reduce-scatters ---- */

/* Appends the reduce-scatters and reduces that reduce what these tasks make, and a transfer of each
 * value to the others that want it. The reductions that are left go to `rest`. */
void add_reduce_scatters(PlanBuilder *planner, const Tasks *tasks, Reductions *rest);

/* ---- reductions by messages ---- */

typedef struct Combining Combining;

/* Decides where each value is made and in which rounds, and appends empty exchanges for these; and
 * a transfer of each value to the others that want it. */
Combining *combining_plan(PlanBuilder *planner, Reductions *reductions);

/* Adds the jobs of sending the contributions, and the sending that leaves no choice to the
 * loads. */
void combining_add(PlanBuilder *planner, Combining *combining, Jobs *jobs);

/* Fills the exchanges with messages. */
void combining_send(PlanBuilder *planner, const Combining *combining, const Jobs *jobs);

#endif
