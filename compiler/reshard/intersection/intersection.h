/* The overlap of two layouts of one tensor.
 *
 * The borders of all boxes of both layouts cut the common view (layout/view.h) into a grid of
 * cells. So each device holds a cell entirely or not at all. Cells with the same holdings
 * (layout/holding.h) on both sides form a bundle; the planner moves bundles, in parts.
 *
 *     [0-1]{0:2} to [0-3]{0:4}, 8 rows: cells of 2 rows; each is held by one device on either side
 *
 * A bundle's elements are numbered cell by cell, row-major; a part is a range [lo, hi) of them. */
#pragma once

#include "layout/view.h"

typedef enum Side { SIDE_FROM, SIDE_TO } Side;

typedef struct Bundle {
    Array(int) cells;
    int64_t volume;        // elements
    int holder_count[2];   // by Side: the number of holdings that contain the bundle
    const int *holders[2]; // by Side: these holdings; bundles with equal holdings share the list
} Bundle;

typedef struct Overlap {
    CommonView view;
    int cut_count[VIEW_MAX_RANK];       // by factor of the view: the number of cuts, ends included
    const int64_t *cuts[VIEW_MAX_RANK]; // by factor: indices of elements, ascending
    Holdings side[2];
    Array(Bundle) bundles; // ordered by their first cells
} Overlap;

/* Returns the overlap of two checked layouts of a tensor of `shape`. */
const Overlap *overlap_of(Arena *arena, Shape shape, const Layout *from, const Layout *to);

/* Writes a cell's first element and extents, by factor of the view. Returns the cell's volume. */
int64_t overlap_cell(const Overlap *overlap, int cell, int64_t *corner, int64_t *extents);

/* Returns whether a device holds a bundle on both sides, with equal offsets, strides and volume. */
bool overlap_stays(const Overlap *overlap, const Bundle *bundle, int device);
