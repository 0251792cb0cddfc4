/* A common shape for a tensor whose dimensions two modules have factored differently.
 *
 *     [8, 6] and [4, 2, 6]   ->   [8, 6]
 *     [6, 4] and [2, 12]     ->   [24]
 */
#ifndef MIGRATION_SHAPE_H
#define MIGRATION_SHAPE_H

#include "layout/layout.h"

/* Returns the finest shape of which both shapes are views. Sets of_a[d] and of_b[d] to the
 * dimension of the result that contains dimension d of `a` and of `b`. No extent may be 0. */
Shape shape_shared(Arena *arena, Shape a, Shape b, int *of_a, int *of_b);

/* Returns a layout of shape `fine` as a layout of a coarser shape. of[d] is the coarse dimension
 * that contains dimension d of `fine`. */
const Layout *layout_coarse(Arena *arena, const Layout *layout, Shape fine, const int *of);

#endif
