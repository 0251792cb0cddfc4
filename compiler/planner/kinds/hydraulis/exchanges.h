/* Sequences that change places: what longest-first dispatch leaves uneven, which in small batches
 * is much. */
#ifndef PLANNER_KINDS_HYDRAULIS_EXCHANGES_H
#define PLANNER_KINDS_HYDRAULIS_EXCHANGES_H

#include "planner/kinds/hydraulis/dispatch.h"

/* Moves sequences of the slowest pipeline to other micro-batches, or has them change places with
 * others, as long as that makes it faster; the ms of the step then. `pipelines` and `microbatches`
 * say where each sequence is (dispatch_places). */
double moves_make(Arena *arena, const Schemes *schemes, const Batch *batch,
                  const Dispatch *dispatch, int *pipelines, int *microbatches);

#endif
