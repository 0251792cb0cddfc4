/* Which dimensions tensor parallelism cuts. */
#ifndef PLANNER_SEARCH_TENSOR_PARALLEL_H
#define PLANNER_SEARCH_TENSOR_PARALLEL_H

#include "planner/search/candidate.h"
#include "planner/search/evaluate.h"

enum { SPLITS_FAST = 2 };

/* Tries names of the model on a few devices, beginning with none: what makes seconds times bytes of
 * a device least comes to those that are cut, or goes, until nothing is better. Names that
 * parameters have come before others, in the rules and in the search, so that what several rules
 * could cut is cut as parameters are. Of all that was tried, the fastest of about as many bytes is
 * the second list, where it is much faster. Returns how many lists there are, one at least; the
 * first is empty where tensor parallelism does not pay off, or there are no devices for it. */
int splits_find(Arena *arena, const EvaluationContext *shop, SplitList lists[SPLITS_FAST]);

/* Returns the same search for what makes the bytes of a device least under a level of ZeRO,
 * whatever it takes: in the smallest micro-batches, with recompute(full). Of all that was tried,
 * which is everything where names are few, what needs not much more than the least is a list,
 * the least first, and one of those that cost the same; returns how many there are, `most` at
 * most. Shapes and micro-batches other than those of the search may turn their order round. */
int splits_find_thrifty(Arena *arena, const EvaluationContext *shop, int zero, SplitList *lists,
                        int most);

/* The lists that have a name of the model more or less; a name more stands where splits_find would
 * have it. */
typedef Array(const SplitList *) SplitListArray;
SplitListArray splits_near(Arena *arena, const SearchModel *model, const SplitList *list);

#endif
