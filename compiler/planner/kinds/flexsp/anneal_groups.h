/* Simulated annealing over groups and their sequences, for a fixed number of micro-batches.
 *
 * The devices of a micro-batch are numbered; a group of degree d starts at a multiple of d. So 2^k
 * devices from a multiple of 2^k on are a block of whole groups, unless one larger group covers
 * them. There are four moves: a sequence goes to another group; two sequences are swapped; the
 * groups of a block are replaced (random degrees, then the longest sequence first to the group that
 * finishes it soonest); two blocks of different micro-batches are swapped.
 *
 * The maximum over groups is smoothed: the time of a micro-batch is (sum d/gpus t^p)^(1/p), and p
 * doubles while the temperature falls. A group that exceeds its memory counts as slower; the
 * best state has no such group. */
#pragma once

#include "planner/kinds/flexsp/flexsp.h"

typedef struct FlexspState FlexspState;

/* Creates a state of `batches` micro-batches that use at most `fill` of the memory (flexsp_cuts,
 * the paper's blaster). `seed` starts the random numbers of its moves. */
FlexspState *flexsp_state(Arena *arena, const Flexsp *q, int batches, double fill, uint64_t seed);

/* Anneals by `work` moves, from the best state if any, and from a temperature of `hot` times a
 * micro-batch's time. */
void flexsp_anneal(FlexspState *state, double hot, int64_t work);

/* Returns the milliseconds of the best state seen in which every group fits; INFINITY: none. */
double flexsp_best(const FlexspState *state);

/* Returns the best state as a plan. */
FlexspPlan *flexsp_state_plan(Arena *arena, const FlexspState *state);

/* The blaster: cuts sequences, sorted by length, into micro-batches, so that sequences that need
 * large groups are together (blaster.c). */

/* Returns the batches + 1 indices at which `order` (sequences, longest first) is cut into
 * micro-batches. The cuts have the least sum of estimated times in which each micro-batch uses at
 * most `fill` of the memory; if there are none, cuts of about equal tokens. */
const int *flexsp_cuts(Arena *arena, const Flexsp *q, const int *order, int batches, double fill);
