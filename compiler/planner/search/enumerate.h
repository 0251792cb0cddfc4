/* All strategies of the space, and of these the best by closed form.
 *
 * Of each class of devices all, some or none work. They are cut into equal stages, those of a class
 * one after the other, with a mesh of dp and tp; the classes stand in any order along the pipeline.
 * Where classes differ there are also a pipeline for each class, with as many rows as it manages,
 * and one stage of all devices with weights along dp or tp. Micro-batches have any rows of which
 * the batch is made.
 */
#ifndef PLANNER_SEARCH_ENUMERATE_H
#define PLANNER_SEARCH_ENUMERATE_H

#include "planner/search/closed_form.h"
#include "planner/search/space.h"

typedef Array(Candidate) CandidateList;

/* Returns the best, by seconds those that fit before those that do not, these by need; of
 * strategies that differ in ZeRO and rows alone a few. At most `most`. Where there are several
 * classes, the first few of each class alone come before all, so that more devices do not make a
 * plan slower. */
CandidateList enumerate(Arena *arena, Profile *profile, const Correction *correction, int most);

/* By need, the least first; equal ones stay as they are. */
void candidates_sort_by_need(Arena *arena, CandidateList *list);

/* Every single pipeline in every way to recompute that needs less than `least` times what devices
 * may have by closed form. */
CandidateList enumerate_small(Arena *arena, Profile *profile, const Correction *correction,
                              double least);

/* Strategies for classes that differ which are no single pipeline of equal stages: a pipeline for
 * each class, and weights along an axis. */

typedef Array(Choice) ChoiceList;

/* Adds them to the list; nothing where there is one class. */
void heterogeneous_add(Arena *arena, Profile *profile, const Correction *correction,
                       ChoiceList *list);

#endif
