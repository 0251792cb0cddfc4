/* Overlap: what two layouts of one tensor have in common.
 *
 * All places where any box of either layout begins or ends cut the common view (layout/view.h) into
 * a grid of cells, so that each device holds a cell whole or not at all. Cells that the same
 * holdings (layout/holding.h) hold form a bundle: the planner moves bundles, in parts.
 *
 * A bundle's elements have one order: its cells one after another, each row-major. A part [lo, hi)
 * counts in that order.
 */
#ifndef RESHARD_INTERSECTION_INTERSECTION_H
#define RESHARD_INTERSECTION_INTERSECTION_H

#include "layout/view.h"

typedef enum Side { SIDE_FROM, SIDE_TO } Side;

typedef struct Bundle {
    Array(int) cells;
    int64_t volume;
    int holder_count[2];   // holdings that have it, by Side
    const int *holders[2]; // one list for all bundles that have the same
} Bundle;

typedef struct Overlap {
    CommonView view;
    int cut_count[VIEW_MAX_RANK]; // the grid: places of cuts along each factor of the view, the
                                  // ends included
    const int64_t *cuts[VIEW_MAX_RANK];
    Holdings side[2];
    Array(Bundle) bundles; // in the order of their first cells
} Overlap;

/* Returns the overlap of two checked layouts of a tensor of `shape`. */
const Overlap *overlap_of(Arena *arena, Shape shape, const Layout *from, const Layout *to);

/* Returns a cell's first element and its extents in the common view, and the number of its
 * elements. */
int64_t overlap_cell(const Overlap *overlap, int cell, int64_t *corner, int64_t *extents);

/* Returns whether a device holds a bundle on both sides, stores it in the same way, and as much
 * in all. */
bool overlap_stays(const Overlap *overlap, const Bundle *bundle, int device);

#endif
