/* Views: the finer shapes in which layouts number a tensor's elements, and the one in which two
 * layouts meet.
 *
 * The common view of two layouts refines both: each of its factors is one step along a dimension of
 * the shape. Where the factors of the two do not nest in a dimension, that is taken as a whole
 * ("flat").
 */
#ifndef LAYOUT_VIEW_H
#define LAYOUT_VIEW_H

#include "layout/holding.h"

enum { VIEW_MAX_RANK = 2 * LAYOUT_MAX_RANK };

typedef struct CommonView {
    Shape shape;
    int rank;
    int dim[VIEW_MAX_RANK];        // the shape's dimension that a factor belongs to
    int64_t weight[VIEW_MAX_RANK]; // how far one step along the factor goes in that dimension
    int64_t extent[VIEW_MAX_RANK];
    bool flat[LAYOUT_MAX_RANK]; // by dimension: the views have no common refinement
} CommonView;

/* Boxes of a view: `count` times its rank ranges. */
typedef struct BoxList {
    int count;
    const Range *ranges;
} BoxList;

/* Returns the common view of two checked layouts of a tensor of `shape`; without factors where
 * that has no elements. */
CommonView view_common(Shape shape, const Layout *a, const Layout *b);

/* Returns the boxes of a holding in the common view, in the order of its region. */
BoxList view_boxes(Arena *arena, const CommonView *view, const Holding *holding);

/* Returns where an element, by its coordinates in the common view, lies in the storage of a
 * holding's devices; and a stride a factor of the common view, as it is within the box of the
 * region in which the element lies. */
int64_t view_storage(const CommonView *view, const Holding *holding, const int64_t *corner,
                     int64_t *strides);

/* Returns whether two holdings store a box that lies within one box of each at the same place
 * and in the same order. */
bool view_same_storage(const CommonView *view, const Holding *a, const Holding *b,
                       const int64_t *corner, const int64_t *extents);

/* Returns the boxes, over `rank` factors of these extents, of the elements [lo, hi) in row-major
 * order. */
BoxList range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi);

#endif
