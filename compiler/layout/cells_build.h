/* What the parts of the cells share while these are made. */
#ifndef LAYOUT_CELLS_BUILD_H
#define LAYOUT_CELLS_BUILD_H

#include "layout/cells.h"

/* The boxes of a piece in the common view: `count` times `rank` ranges. */
typedef struct Boxes {
    int count;
    const Range *ranges;
} Boxes;

/* The factors of dimension `dim` in the numbering of a layout: the first goes to *first, the result is past the last. */
int view_factors(const Layout *layout, int dim, int *first);

/* The same in the common view. */
int common_factors(const Cells *cells, int dim, int *first);

/* Adds a dimension of the tensor to the common view, refined as far as both layouts need; where their factors do not nest, it stays whole.
 */
void cells_refine(Cells *cells, int dim);

/* A piece's boxes in the common view. */
Boxes common_boxes(const Cells *cells, Side side, const Piece *piece);

/* Makes a side's pieces, and its devices with theirs. */
void make_pieces(Arena *arena, CellSide *side, Shape shape);

/* The intervals of the grid in which a cell lies, one a factor. */
void cell_index(const Cells *cells, int cell, int *index);

#endif
