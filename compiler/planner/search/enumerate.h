/* Enumerates the search space and keeps the best strategies by closed form.
 *
 * A strategy uses all, some or no devices of each class. The devices of a class form consecutive
 * equal stages with a mesh of dp and tp; the classes come in any order along the pipeline. Clusters
 * with several classes have further strategies: a pipeline for each class, with rows by its speed;
 * and one stage of all devices with weights along dp or tp. Micro-batches have any number of rows
 * that divides the batch.
 *
 * space.c has the shapes of one pipeline, layer_costs.c the largest tp.
 *
 *     16 devices: 1 stage dp 16; dp 8 x tp 2; ...; 2 stages of dp 4 x tp 2; ...; 16 stages
 */
#pragma once

#include "planner/search/space.h"

typedef Array(Candidate) CandidateList;

/* Returns the best `most` candidates: those that fit, sorted by seconds, then others, sorted by
 * need. Keeps a few of the candidates that differ only in ZeRO and rows. With several classes, a
 * few of each class alone come first, so that more devices never make a plan slower. */
CandidateList enumerate(Arena *arena, Profile *profile, const Correction *correction, int most);

/* Sorts candidates by need; candidates of equal need keep their order. */
void candidates_sort_by_need(Arena *arena, CandidateList *list);

/* Returns all candidates of one pipeline whose need by closed form is below `least`. */
CandidateList enumerate_small(Arena *arena, Profile *profile, const Correction *correction,
                              double least);

/* Strategies for several device classes, except one pipeline of equal stages: a pipeline for each
 * class, and weights along an axis (heterogeneous.c). */

typedef Array(Choice) ChoiceList;

/* Adds the strategies for several classes; adds none for one class, or more than GROUPS_MOST. */
void heterogeneous_add(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list);
