/* Reductions: each value is reduced once, in parts at several of its target devices, and then sent
 * to the other targets, so that all targets get the same bits.
 *
 * If all devices of a group with one holder of each contribution are targets, an all-reduce does
 * both (all_reduce.c). If the groups of all parts are the same devices, the parts form one
 * reduce-scatter, or a reduce if one device keeps all parts (reduce_scatter.c). All other values
 * are reduced by messages (messages.c).
 *
 * On hosts, contributions are added in the order of runtime/exchange/collective_rounds.h; on GPUs,
 * NCCL chooses the order.
 *
 *     {sum:4} to {dup:4}: all-reduce    {sum:4} to {0:4}: reduce-scatter    {sum:4} to [0]: reduce
 */
#pragma once

#include "reshard/load/balance_load.h"
#include "reshard/devices.h"

/* A reduction that is done by messages. */
typedef struct Reduction {
    int task;
    Devices reducers; // the targets that hold a contribution, or all targets if none does
    bool holds;       // the reducers hold contributions
    // by reducer, if `holds`: number of elements that it reduces
    int64_t *shares;
} Reduction;

typedef Array(Reduction) Reductions;

/* Task numbers, ordered by bucket. */
typedef Array(int) Tasks;

/* ---- all-reduces ---- */

/* Appends the steps of the tasks that are all-reduces. Returns the remaining tasks. */
Tasks add_all_reduces(PlanBuilder *planner, const Tasks *tasks);

/* Returns, sorted, holder `replica` (modulo the number of holders) of each contribution. */
Devices holder_group(PlanBuilder *planner, const Task *task, int replica);

/* ---- reduce-scatters ---- */

/* Appends the reduce-scatters and reduces of tasks, and the transfers of each value to its other
 * targets. Appends the remaining reductions to `rest`. */
void add_reduce_scatters(PlanBuilder *planner, const Tasks *tasks, Reductions *rest);

/* ---- reductions by messages ---- */

typedef struct Combining Combining;

/* Decides where each value is reduced and in how many rounds. Appends an empty exchange for each
 * round, and the transfers of each value to its other targets. */
Combining *combining_plan(PlanBuilder *planner, Reductions *reductions);

/* Adds jobs for contributions with several holders, and the bytes of the others to plan->sent. */
void combining_add(PlanBuilder *planner, Combining *combining, Jobs *jobs);

/* Fills the exchanges with messages once the jobs are divided. */
void combining_send(PlanBuilder *planner, const Combining *combining, const Jobs *jobs);
