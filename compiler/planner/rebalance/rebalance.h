/* Balance: a strategy for a model some of whose devices have become slow, from the strategy that it
 * runs under.
 *
 *     BalanceRequest request = {.rates = rates, .now = "base", .base = "base", .name =
 *         "balanced1"};
 *     BalanceAnswer *answer = balance_plan(arena, modules, count, &request);
 *
 * Devices take `rates` times as long as healthy ones of their class. What is tried: the strategies
 * that there are; the one in force with other layers on its stages, and other rows to its pipelines
 * (same_groups.c); weights of the mesh axis that cuts the batch (same_groups.c); and other groups
 * of devices, by the planner malleus (regroup.c). Of those that are within 1% of the fastest, the
 * one that moves least is taken (minimize_moves.c makes each of them move little), if hetucc
 * accepts it. layer_work.h says what is known of the model, layout_model.h what a strategy takes.
 */
#ifndef PLANNER_REBALANCE_REBALANCE_H
#define PLANNER_REBALANCE_REBALANCE_H

#include "ir/module.h"

typedef struct BalanceRequest {
    int rate_count;
    const double *rates; // by device
    const char *now;     // the strategy in force
    // the one that the program began with: where all devices are healthy, it is taken
    const char *base;
    const char *name; // of what is made
    bool (*accepts)(void *state,
                    const Strategy *strategy); // whether the model can be laid so, and its devices
                                               // have the memory; NULL: it is not asked
    void *state;
} BalanceRequest;

typedef struct BalanceAnswer {
    const Strategy *strategy;
    bool made;             // it is new
    double now, then;      // of a step under the strategy in force, and under this one, in one unit
    double bytes, seconds; // that a switch to it moves, at most
    int device_count;
    // of each device under the base, and under this one, when it is healthy
    const double *first, *work;
    const char *error; // a line: why there is no answer
} BalanceAnswer;

/* `modules` are those of one model, trained, by strategy, that have come through pass
 * specialize. */
BalanceAnswer *balance_plan(Arena *arena, Module *const *modules, int count,
                            const BalanceRequest *request);

#endif
