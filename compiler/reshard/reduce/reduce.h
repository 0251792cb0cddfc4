/* Reductions: each value is reduced once, in parts at several of the devices that want it, and then
 * sent to the others, so that all holders get the same bits.
 *
 * Where groups of one holder of each contribution each want all of the value, an all-reduce does
 * both (all_reduce.c). Where the groups of all parts are the same devices, the parts are one
 * reduce-scatter, or a reduce when all are at one device (reduce_scatter.c). The rest is reduced by
 * messages (messages.c).
 *
 *     {sum:4} to {dup:4}: all-reduce    {sum:4} to {0:4}: reduce-scatter    {sum:4} to [0]: reduce
 */
#ifndef RESHARD_REDUCE_REDUCE_H
#define RESHARD_REDUCE_REDUCE_H

#include "reshard/senders/balance_senders.h"
#include "reshard/devices.h"

/* A reduction that is done by messages. */
typedef struct Reduction {
    int task;
    Devices reducers; // the devices that want the value and hold a contribution, or else all that
                      // want it
    bool holds;       // the reducers hold contributions
    // by reducer, if they hold contributions: elements that are complete there first
    int64_t *shares;
} Reduction;

typedef Array(Reduction) Reductions;

/* Task numbers, ordered by bucket. */
typedef Array(int) Tasks;

/* ---- all-reduces ---- */

/* Appends the all-reduces among these tasks. Returns the tasks that are left. */
Tasks add_all_reduces(PlanBuilder *planner, const Tasks *tasks);

/* Returns the group of one holder of each contribution, number `replica` of its holders, sorted. */
Devices holder_group(PlanBuilder *planner, const Task *task, int replica);

/* ---- reduce-scatters ---- */

/* Appends the reduce-scatters and reduces of these tasks, and the transfers of each value to the
 * others that want it. What is left goes to `rest`. */
void add_reduce_scatters(PlanBuilder *planner, const Tasks *tasks, Reductions *rest);

/* ---- reductions by messages ---- */

typedef struct Combining Combining;

/* Decides where each value is reduced and in how many rounds; appends empty exchanges for these,
 * and the transfers of each value to the others that want it. */
Combining *combining_plan(PlanBuilder *planner, Reductions *reductions);

/* Adds the jobs of sending contributions, and to the loads the sending without a choice. */
void combining_add(PlanBuilder *planner, Combining *combining, Jobs *jobs);

/* Fills the exchanges with messages once the jobs are divided. */
void combining_send(PlanBuilder *planner, const Combining *combining, const Jobs *jobs);

#endif
