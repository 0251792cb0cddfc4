/* Views: shapes with factored dimensions in which layouts number a tensor's elements.
 *
 * The common view of two layouts refines both views: each of its factors belongs to one dimension.
 * A dimension in which the strides of both views do not divide each other is flat: one factor.
 *
 *     12 as (3*4) and as (4*3): strides 4 and 3 do not divide each other, so the dimension is flat
 *     12 as (4*3) and as (2*6): common factors 2, 2, 3
 */
#pragma once

#include "layout/holding.h"

enum { VIEW_MAX_RANK = 2 * LAYOUT_MAX_RANK };

typedef struct CommonView {
    Shape shape;
    int rank;
    int dim[VIEW_MAX_RANK];        // dimension of the shape that the factor belongs to
    int64_t weight[VIEW_MAX_RANK]; // elements of that dimension in one step along the factor
    int64_t extent[VIEW_MAX_RANK];
    bool flat[LAYOUT_MAX_RANK]; // by dimension: the views have no common refinement
} CommonView;

/* Boxes of a view: `count` boxes of rank ranges each. */
typedef struct BoxList {
    int count;
    const Range *ranges;
} BoxList;

/* Returns the common view of two checked layouts of `shape`; an empty tensor's has no factors. */
CommonView view_common(Shape shape, const Layout *a, const Layout *b);

/* Returns the boxes of a holding in the common view, in its region's order. */
BoxList view_boxes(Arena *arena, const CommonView *view, const Holding *holding);

/* Returns the offset (in elements) of an element, given by common-view coordinates, in the storage
 * of a holding's devices. Writes the storage stride (in elements) of each common-view factor. */
int64_t view_storage(const CommonView *view, const Holding *holding, const int64_t *corner,
                     int64_t *strides);

/* Returns whether two holdings store a box at the same offset and with the same strides. The box
 * must lie inside one box of each holding. */
bool view_same_storage(const CommonView *view, const Holding *a, const Holding *b,
                       const int64_t *corner, const int64_t *extents);

/* Returns boxes that together contain the elements [lo, hi), numbered row-major over `extents`. */
BoxList range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi);
