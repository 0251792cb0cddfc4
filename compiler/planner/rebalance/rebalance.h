/* Rebalancing (load balancing, replanning for stragglers): after some devices have become slow,
 * finds a strategy for a model, starting from the strategy in force.
 *
 *     BalanceRequest request = {.rates = rates, .now = "base", .base = "base", .name =
 *         "balanced1"};
 *     BalanceAnswer *answer = balance_plan(arena, modules, count, &request);
 *
 * A device takes `rates` times as long as a healthy one of its class. Candidates are: the existing
 * strategies; the strategy in force with other layers on stages and other rows for pipelines
 * (same_groups.c); weights of the mesh axis that cuts the batch (same_groups.c); other groups of
 * devices, by the planner malleus (regroup.c). Of the candidates within 1% of the fastest,
 * the one that moves fewest bytes is taken if hetucc accepts it; minimize_moves.c lowers the bytes.
 * layer_work.h has the work of the model, layout_model.h the time of a strategy.
 *
 * If links carry less than the cluster file says, times are those of whole steps (`seconds`), and
 * the strategy that `search` finds is a candidate, too.
 *
 *     before  pipeline microbatches(4): stage devices(0,1), stage devices(2,3)   device 3 slow
 *     after   fewer layers on devices(2,3), and fewer micro-batches for that pipeline
 */
#pragma once

#include "ir/module.h"

typedef struct BalanceRequest {
    int rate_count;
    const double *rates; // by device: its time over that of a healthy device of its class
    const char *now;     // name of the strategy in force
    const char *base;    // name of the strategy for healthy devices
    const char *name;    // name of a new strategy
    // returns whether hetucc accepts the strategy and the devices have the memory; NULL: always
    bool (*accepts)(void *state, const Strategy *strategy);
    // returns the seconds of a step on links that are not as the cluster file says, at `rates`;
    // NAN: hetucc refuses the strategy, or a rate is unknown; NULL: links are as the file says
    double (*seconds)(void *state, const Strategy *strategy, const double *rates);
    // with `seconds`: returns the strategy that is best on these links; NULL: none was found
    const Strategy *(*search)(void *state);
    void *state;
} BalanceRequest;

typedef struct BalanceAnswer {
    const Strategy *strategy;
    bool made;        // the strategy is new; false: one of the existing strategies
    double now, then; // times of a step under the strategy in force and the new one, in one unit
    double bytes, seconds; // upper bounds of what the switch moves and takes
    int device_count;
    // by device: its work, if healthy, under the base strategy, and under `strategy`
    const double *first, *work;
    const char *error; // one line that says why there is no answer; NULL: there is one
} BalanceAnswer;

/* Returns a strategy, or an error. `modules` are the modules of one trained model, one for each
 * strategy, after pass specialize. */
BalanceAnswer *balance_plan(Arena *arena, Module *const *modules, int count,
                            const BalanceRequest *request);
