/* Chooses the dimensions that tensor parallelism cuts (sequence and expert dimensions included):
 * `split heads:tp ffn:tp vocab:tp`. */
#ifndef PLANNER_SEARCH_TENSOR_PARALLEL_H
#define PLANNER_SEARCH_TENSOR_PARALLEL_H

#include "planner/search/candidate.h"
#include "support/array.h"

typedef struct EvaluationContext EvaluationContext;
typedef struct SearchModel SearchModel;

enum { SPLITS_FAST = 2 };

/* Finds the lists of dimensions to cut, by local search on a few devices. It begins with no
 * dimension; the one whose cut lowers seconds * bytes of a device most is added, or one is removed,
 * until nothing improves.
 *
 * Dimensions of parameters come before others in the search and in the rules, so that where several
 * rules could cut a value it is cut like the parameters. lists[0] is the result; lists[1] is the
 * fastest list of about as many bytes where it is much faster. Returns how many lists there are;
 * the first is empty where tensor parallelism does not pay off, or there are no devices for it. */
int splits_find(Arena *arena, const EvaluationContext *context, SplitList lists[SPLITS_FAST]);

/* Finds the lists that need the least memory under a ZeRO level, with the smallest micro-batches
 * and recompute(full). Lists that need little more than the least one follow it, one of each cost.
 * Returns how many there are, at most `most`. Other shapes and micro-batches may change their
 * order. */
int splits_find_thrifty(Arena *arena, const EvaluationContext *context, int zero, SplitList *lists,
                        int most);

/* The lists with one dimension of the model more or less; an added one is placed as splits_find
 * would. */
typedef Array(const SplitList *) SplitListArray;
SplitListArray splits_near(Arena *arena, const SearchModel *model, const SplitList *list);

#endif
