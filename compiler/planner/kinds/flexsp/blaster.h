/* The blaster: sequences in order of length are cut into micro-batches, so that those which need
 * large groups stand together. */
#ifndef PLANNER_KINDS_FLEXSP_BLASTER_H
#define PLANNER_KINDS_FLEXSP_BLASTER_H

#include "planner/kinds/flexsp/flexsp.h"

/* Where `order` (sequences, longest first) is cut into `batches` micro-batches, batches + 1 places:
 * the least sum of estimated times with at most `fill` of the memory used by any; equal numbers of
 * tokens when there is none. */
const int *flexsp_cuts(Arena *arena, const Flexsp *q, const int *order, int batches, double fill);

#endif
