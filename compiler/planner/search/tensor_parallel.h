/* Chooses the dimensions that tensor parallelism cuts (sequence and expert dimensions included):
 * `split heads:tp ffn:tp vocab:tp`. For fewer key-value heads than tp see passes/seed_layouts. */
#pragma once

#include "planner/search/candidate.h"
#include "support/array.h"

typedef struct EvaluationContext EvaluationContext;
typedef struct SearchModel SearchModel;

enum { SPLITS_FAST = 2 };

/* Finds the lists of dimensions to cut, by local search on a few devices. Begins with no dimension,
 * and adds or removes the one that lowers seconds * bytes of a device most, until no change does.
 *
 * Dimensions of parameters come first in the search and in the rules. So a value that several rules
 * could cut is cut like the parameters. lists[0] is the result; lists[1] is the fastest list of
 * about equal bytes, if it is much faster. Returns how many lists there are. lists[0] is empty when
 * tensor parallelism does not pay off, or there is one device. */
int splits_find(Arena *arena, const EvaluationContext *context, SplitList lists[SPLITS_FAST]);

/* Finds the lists that need the least memory under a ZeRO level, with the smallest micro-batches
 * and recompute(full). Lists that need little more memory follow the first; of lists with
 * equal bytes and seconds, one is kept. Returns how many there are, at most `most`. With other
 * meshes and micro-batches the order of the lists may differ. */
int splits_find_thrifty(Arena *arena, const EvaluationContext *context, int zero, SplitList *lists,
                        int most);

typedef Array(const SplitList *) SplitListArray;
/* Returns the lists with one dimension more or less; an added one is placed as in splits_find. */
SplitListArray splits_near(Arena *arena, const SearchModel *model, const SplitList *list);
