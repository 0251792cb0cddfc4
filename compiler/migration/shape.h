/* One shape for a tensor that two modules have factored differently.
 *
 *     [8, 6] and [4, 2, 6]   ->   [8, 6];   [6, 4] and [2, 12]   ->   [24] */
#ifndef MIGRATION_SHAPE_H
#define MIGRATION_SHAPE_H

#include "layout/layout.h"

/* The finest shape of which both are views, and the dimension of it that each dimension of either
 * belongs to. Neither shape is empty. */
Shape shape_shared(Arena *arena, Shape a, Shape b, int *of_a, int *of_b);

/* A layout of a tensor of `fine`, as one of the shape whose dimension of[d] has dimension d of
 * `fine` as a factor. */
const Layout *layout_coarse(Arena *arena, const Layout *layout, Shape fine, const int *of);

#endif
