/* Enumerates the search space and keeps the best strategies by closed form.
 *
 * Of each class of devices all, some or none work. They are cut into equal stages with a mesh of dp
 * and tp, those of a class one after the other; the classes stand in any order along the pipeline.
 * For different classes there are also: a pipeline for each class, with rows by its speed; and one
 * stage of all devices with weights along dp or tp. Micro-batches have any number of rows that
 * divides the batch.
 *
 *     16 devices: 1 stage dp 16; dp 8 x tp 2; ...; 2 stages of dp 4 x tp 2; ...; 16 stages
 */
#ifndef PLANNER_SEARCH_ENUMERATE_H
#define PLANNER_SEARCH_ENUMERATE_H

#include "planner/search/space.h"

typedef Array(Candidate) CandidateList;

/* Returns the best `most` candidates: those that fit by seconds, then the others by need; of
 * candidates that differ in ZeRO and rows alone, a few. Where there are several classes, the first
 * few of each class alone come before all others, so that additional devices never make a plan
 * slower. */
CandidateList enumerate(Arena *arena, Profile *profile, const Correction *correction, int most);

/* Sorts candidates by need; equal ones keep their order. */
void candidates_sort_by_need(Arena *arena, CandidateList *list);

/* Returns every single pipeline, with every way to recompute, whose need by closed form is below
 * `least`. */
CandidateList enumerate_small(Arena *arena, Profile *profile, const Correction *correction,
                              double least);

/* Strategies for several device classes that are no single pipeline of equal stages: a pipeline for
 * each class, and weights along an axis (heterogeneous.c). */

typedef Array(Choice) ChoiceList;

/* Adds these strategies to the list; nothing where there is one class. */
void heterogeneous_add(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list);

#endif
