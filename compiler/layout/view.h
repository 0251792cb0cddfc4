/* Views: shapes with factored dimensions in which layouts number a tensor's elements.
 *
 * The common view of two layouts refines both: each of its factors is a step along one dimension of
 * the shape. A dimension in which the factors of the two do not nest is flat: it is one factor.
 *
 *     (12) cut by 3 and by (4*3): factors 3 and 4 do not nest, so the dimension is flat
 *     (12) cut by 4 as (4*3) and by 2 as (2*6): common factors 2, 2, 3
 */
#ifndef LAYOUT_VIEW_H
#define LAYOUT_VIEW_H

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

/* Returns the common view of two checked layouts of a tensor of `shape`; it has no factors if the
 * tensor is empty. */
CommonView view_common(Shape shape, const Layout *a, const Layout *b);

/* Returns the boxes of a holding in the common view, in its region's order. */
BoxList view_boxes(Arena *arena, const CommonView *view, const Holding *holding);

/* Returns the offset of an element, given by common-view coordinates, in the storage of a holding's
 * devices. Sets by factor the stride within the region's box that contains the element. */
int64_t view_storage(const CommonView *view, const Holding *holding, const int64_t *corner,
                     int64_t *strides);

/* Returns whether two holdings store a box, which is within one box of each, at the same offset and
 * in the same order. */
bool view_same_storage(const CommonView *view, const Holding *a, const Holding *b,
                       const int64_t *corner, const int64_t *extents);

/* Returns boxes that together contain the elements [lo, hi), numbered row-major over `extents`. */
BoxList range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi);

#endif
