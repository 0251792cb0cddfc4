/* Cells: what two layouts of one tensor have in common.
 *
 * Both layouts are brought to one view that refines both. All places where any box of either begins or ends cut that view into a grid of
 * cells, so that each device holds a cell whole or not at all. Devices that hold the same elements in the same way form one piece; a cell
 * knows the pieces that hold it. Cells that the same pieces hold form a bundle: the planner moves bundles, in parts.
 *
 * A bundle's elements have one order: its cells one after another, each row-major. A part [lo, hi) counts in that order.
 */
#ifndef LAYOUT_CELLS_H
#define LAYOUT_CELLS_H

#include "layout/layout.h"
#include "support/array.h"

enum { CELL_MAX_RANK = 2 * LAYOUT_MAX_RANK };

typedef enum Side { SIDE_FROM, SIDE_TO } Side;

/* Devices with the same region, replica and contribution, in the layout's order. */
typedef struct Piece {
    int replica, partial; // named by their smallest device, so that numbering does not matter
    int device_count;
    int *devices;
    const Region *region;
    const int64_t *storage; // where each box begins in the device's storage
} Piece;

typedef struct Bundle {
    int cell_count;
    const int *cells;
    int64_t volume;
    int holder_count[2]; // pieces that hold it, by Side
    const int *holders[2];
} Bundle;

/* One layout as the cells see it. */
typedef struct CellSide {
    const Layout *layout;
    StateKind partial;
    int piece_count, device_count;
    const Piece *pieces;
    const int *devices;  // in ascending order
    const int *piece_of; // by index in devices
} CellSide;

typedef struct Cells {
    Arena *arena;
    Shape shape;
    int rank;                      // of the common view
    int dim[CELL_MAX_RANK];        // the shape's dimension that a factor of the common view belongs to
    int64_t weight[CELL_MAX_RANK]; // how far one step along the factor goes in that dimension
    int64_t extent[CELL_MAX_RANK];
    int cut_count[CELL_MAX_RANK]; // the grid: places of cuts along each factor, the ends included
    const int64_t *cuts[CELL_MAX_RANK];
    bool flat[LAYOUT_MAX_RANK]; // the views of this dimension have no common refinement; it is taken as a whole
    CellSide side[2];
    int bundle_count;
    const Bundle *bundles; // in the order of their first cells
} Cells;

/* The cells of two checked layouts of a tensor of `shape`. */
const Cells *cells_of(Arena *arena, Shape shape, const Layout *from, const Layout *to);

/* Whether both sides give every device the same elements in the same order, and the same contributions. */
bool cells_equal(const Cells *cells);

/* The piece of `device` on a side; -1 when it stands in that layout nowhere. */
int cells_piece_of(const Cells *cells, Side side, int device);

/* A cell's extents in the common view, and the number of its elements. */
int64_t cell_extents(const Cells *cells, int cell, int64_t *extents);

/* The boxes, over `rank` factors of these extents, of the elements [lo, hi) in row-major order; rank ranges a box. */
const Range *range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi, int *count);

/* Where a cell lies in the storage of a piece's devices: the offset of its first element, and a stride a factor of the common view. */
int64_t cell_storage(const Cells *cells, Side side, int piece, int cell, int64_t *strides);

/* Whether the devices of two pieces, one of each side, store a cell at the same place and in the same order. */
bool cells_same_storage(const Cells *cells, int cell, int from, int to);

#endif
