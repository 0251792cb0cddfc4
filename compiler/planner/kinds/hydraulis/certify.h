/* A lower bound of a batch's step, for strategies of so many devices, or for one that is given. */
#ifndef PLANNER_KINDS_HYDRAULIS_CERTIFY_H
#define PLANNER_KINDS_HYDRAULIS_CERTIFY_H

#include "planner/kinds/hydraulis/problem.h"

#include <jansson.h>

/* The bound in ms of a batch's step; `strategy` NULL: of every strategy of `gpus` devices. What
 * proves it goes into *proof, a new object.
 */
double batch_bound(Arena *arena, const Schemes *schemes, const Strategy *strategy, int gpus,
                   const Batch *batch, json_t **proof);

#endif
