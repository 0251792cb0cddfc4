/* Annealing over groups and their sequences, with a fixed number of micro-batches.
 *
 * The devices of a micro-batch are a row; a group of degree d starts at a multiple of d, so that
 * what starts at a multiple of a power of two and is as long is a block of whole groups, unless one
 * group covers it. Four moves: a sequence goes to another group, two sequences change places, a
 * block is formed anew (random degrees, longest sequence first to the group that is done with it
 * soonest), and two blocks of different micro-batches change places.
 *
 * The maximum over groups is smoothed: a micro-batch counts (sum d/gpus t^p)^(1/p), p doubles while
 * the temperature falls. A group that overflows its memory counts longer in proportion; what is
 * kept at the end holds.
 */
#ifndef PLANNER_KINDS_FLEXSP_ANNEAL_H
#define PLANNER_KINDS_FLEXSP_ANNEAL_H

#include "planner/kinds/flexsp/flexsp.h"

typedef struct FlexspState FlexspState;

/* `batches` micro-batches, sequences cut by length into equal work (the paper's blaster); `seed`
 * begins the moves' random numbers. */
FlexspState *flexsp_state(Arena *arena, const Flexsp *q, int batches, double fill, uint64_t seed);

/* Anneals by `work` moves, from the best state so far if there is one; temperatures fall from `hot`
 * times a micro-batch's time. */
void flexsp_anneal(FlexspState *state, double hot, int64_t work);

/* Milliseconds of the best state seen in which every group fits its memory; INFINITY when there was
 * none. */
double flexsp_best(const FlexspState *state);

/* The best state as a plan. */
FlexspPlan *flexsp_state_plan(Arena *arena, const FlexspState *state);

#endif
