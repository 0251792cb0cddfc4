/* Computes the common view of two layouts, and boxes, offsets and strides in this view. */
#include "layout/view.h"

#include "support/array.h"

#include <stdlib.h>

typedef Array(Range) Ranges;

/* ---- the common view of two layouts ---- */

/* Returns the end of the factors [*first, end) of dimension `dim` in a layout's view. */
static int view_factors(const Layout *layout, int dim, int *first) {
    if (!layout->view_rank) {
        *first = dim;
        return dim + 1;
    }
    int f = 0;
    while (f < layout->view_rank && layout->view_dim[f] < dim) f++;
    *first = f;
    while (f < layout->view_rank && layout->view_dim[f] == dim) f++;
    return f;
}

static int compare_down(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* Writes the strides of all factors of a dimension in both layouts, and the dimension's extent, in
 * descending order without repetition. Returns the number of written entries. */
static int collect_strides(Shape shape, const Layout *const *layouts, int dim, int64_t *strides) {
    int count = 0;
    for (int side = 0; side < 2; side++) {
        Shape own = layout_view(layouts[side], shape);
        int first, last = view_factors(layouts[side], dim, &first);
        int64_t stride = 1;
        for (int f = last - 1; f >= first; f--) {
            strides[count++] = stride;
            stride *= own.extent[f];
        }
        strides[count++] = stride;
    }
    qsort(strides, (size_t)count, sizeof *strides, compare_down);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!i || strides[i] != strides[kept - 1]) strides[kept++] = strides[i];
    return kept;
}

static void add_factor(CommonView *view, int dim, int64_t extent, int64_t weight) {
    view->dim[view->rank] = dim;
    view->extent[view->rank] = extent;
    view->weight[view->rank++] = weight;
}

/* Adds factors of a dimension that refine both layouts' views, or one flat factor if none do. */
static void refine(CommonView *view, const Layout *const *layouts, int dim) {
    int64_t strides[2 * LAYOUT_MAX_RANK + 2];
    int count = collect_strides(view->shape, layouts, dim, strides);
    bool nests = true;
    for (int i = 0; i + 1 < count; i++) nests = nests && strides[i] % strides[i + 1] == 0;
    view->flat[dim] = !nests;
    if (!nests) add_factor(view, dim, view->shape.extent[dim], 1);
    else if (count == 1) add_factor(view, dim, 1, 1);
    else
        for (int i = 0; i + 1 < count; i++)
            add_factor(view, dim, strides[i] / strides[i + 1], strides[i + 1]);
}

CommonView view_common(Shape shape, const Layout *a, const Layout *b) {
    CommonView view = {.shape = shape};
    for (int d = 0; d < shape.rank; d++)
        if (!shape.extent[d]) return view;
    for (int d = 0; d < shape.rank; d++) refine(&view, (const Layout *const[]){a, b}, d);
    return view;
}

/* Returns the factors of dimension `dim` in the common view, as view_factors does. */
static int common_factors(const CommonView *view, int dim, int *first) {
    int f = 0;
    while (f < view->rank && view->dim[f] < dim) f++;
    *first = f;
    while (f < view->rank && view->dim[f] == dim) f++;
    return f;
}

/* ---- boxes of one view as boxes of the common view ---- */

/* State of split_range, which cuts a range of row-major element numbers into boxes over factors. */
typedef struct RangeSplit {
    Arena *arena;
    Ranges out; // finished boxes, `rank` ranges each
    const int64_t *extents;
    int rank;
    Range box[VIEW_MAX_RANK]; // the current box, as far as its factors are known
} RangeSplit;

/* Appends boxes of the elements [lo, hi), numbered row-major over the factors from f on; the
 * current box gives the ranges of the factors before f. */
static void split_range(RangeSplit *split, int f, int64_t lo, int64_t hi) {
    if (f + 1 >= split->rank) {
        split->box[f] = (Range){lo, hi};
        for (int i = 0; i < split->rank; i++) array_push(split->arena, &split->out, split->box[i]);
        return;
    }
    int64_t inner = 1;
    for (int i = f + 1; i < split->rank; i++) inner *= split->extents[i];
    int64_t a = lo / inner, b = hi / inner;
    if (lo % inner) {
        split->box[f] = (Range){a, a + 1};
        split_range(split, f + 1, lo % inner, a == b ? hi % inner : inner);
        if (a++ == b) return;
    }
    if (a < b) {
        split->box[f] = (Range){a, b};
        split_range(split, f + 1, 0, inner);
    }
    if (hi % inner) {
        split->box[f] = (Range){b, b + 1};
        split_range(split, f + 1, 0, hi % inner);
    }
}

BoxList range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi) {
    RangeSplit split = {.arena = arena, .extents = extents, .rank = rank};
    split_range(&split, 0, lo, hi);
    return (BoxList){rank ? split.out.count / rank : 1, split.out.at};
}

/* Converts a box's ranges of a flat dimension's factors to ranges of the whole dimension. */
static Ranges flat_ranges(Arena *arena, Shape own, const Range *range) {
    Ranges list = {0};
    int64_t stride = 1, count = 1;
    int last = own.rank - 1;
    for (; last > 0 && range[last].lo == 0 && range[last].hi == own.extent[last]; last--)
        stride *= own.extent[last];
    for (int f = 0; f < last; f++) count *= range[f].hi - range[f].lo;
    for (int64_t i = 0; i < count; i++) {
        int64_t begin = 0, weight = stride * own.extent[last], rest = i;
        for (int f = last - 1; f >= 0; f--) {
            int64_t width = range[f].hi - range[f].lo;
            begin += (range[f].lo + rest % width) * weight;
            rest /= width;
            weight *= own.extent[f];
        }
        array_push(arena, &list,
                   (Range){begin + range[last].lo * stride, begin + range[last].hi * stride});
    }
    return list;
}

/* Lists of boxes over successive factors of the common view; a choice of one from each is a box. */
typedef struct DimProduct {
    Arena *arena;
    int count;
    BoxList list[VIEW_MAX_RANK];
    int width[VIEW_MAX_RANK]; // by list: number of factors
} DimProduct;

static void add_list(DimProduct *product, BoxList list, int width) {
    product->list[product->count] = list;
    product->width[product->count++] = width;
}

/* Adds to `product` the boxes of a layout's `range` in dimension `dim`, which must not be flat. */
static void add_nested(DimProduct *product, const CommonView *view, Shape own, const Range *range,
                       int dim) {
    static const Range one = {0, 1};
    int first, last = common_factors(view, dim, &first), at = first;
    for (int f = 0; f < own.rank; f++) {
        int begin = at;
        for (int64_t extent = 1; extent < own.extent[f]; at++) extent *= view->extent[at];
        if (begin < at)
            add_list(product,
                     range_boxes(product->arena, view->extent + begin, at - begin, range[f].lo,
                                 range[f].hi),
                     at - begin);
    }
    if (at < last) add_list(product, (BoxList){1, &one}, 1);
}

/* Converts a box of a layout's view to boxes of the common view, and appends them. */
static void add_boxes(Arena *arena, const CommonView *view, const Layout *layout, const Box *box,
                      Ranges *out) {
    Shape own = layout_view(layout, view->shape);
    DimProduct product = {.arena = arena};
    for (int d = 0; d < view->shape.rank; d++) {
        int first, last = view_factors(layout, d, &first);
        Shape part = {last - first, own.extent + first};
        if (view->flat[d]) {
            Ranges flat = flat_ranges(arena, part, box->dim + first);
            add_list(&product, (BoxList){flat.count, flat.at}, 1);
        } else add_nested(&product, view, part, box->dim + first, d);
    }
    int total = 1;
    for (int p = 0; p < product.count; p++) total *= product.list[p].count;
    for (int i = 0; i < total; i++)
        for (int p = 0, rest = total; p < product.count; p++) {
            rest /= product.list[p].count;
            const Range *ranges =
                product.list[p].ranges + i / rest % product.list[p].count * product.width[p];
            for (int w = 0; w < product.width[p]; w++) array_push(arena, out, ranges[w]);
        }
}

BoxList view_boxes(Arena *arena, const CommonView *view, const Holding *holding) {
    Ranges ranges = {.at = arena_array(arena, Range, 0)};
    for (int b = 0; b < holding->region->box_count; b++)
        add_boxes(arena, view, holding->layout, &holding->region->boxes[b], &ranges);
    return (BoxList){view->rank ? ranges.count / view->rank : holding->region->box_count,
                     ranges.at};
}

/* ---- offsets and strides in a holding's storage (holding.h: devices with equal elements) ---- */

/* Converts an element's coordinates in the common view to those in a layout's view (`own`). */
static void own_place(const CommonView *view, const Layout *layout, const int64_t *place,
                      int64_t *own) {
    Shape numbered = layout_view(layout, view->shape);
    for (int d = 0, f = 0; d < view->shape.rank; d++) {
        int64_t along = 0;
        for (; f < view->rank && view->dim[f] == d; f++) along += place[f] * view->weight[f];
        int first, last = view_factors(layout, d, &first);
        for (int v = last - 1; v >= first; v--) {
            own[v] = along % numbered.extent[v];
            along /= numbered.extent[v];
        }
    }
}

/* Returns the box of a region that contains an element, and writes the box's storage. */
static const Box *box_at(const Region *region, const int64_t *place, Placing *placing) {
    int64_t before = 0;
    for (int b = 0; b < region->box_count; b++) {
        const Range *range = region->boxes[b].dim;
        bool inside = true;
        int64_t volume = 1;
        placing->at = before;
        for (int d = 0; d < region->rank; d++) {
            inside = inside && range[d].lo <= place[d] && place[d] < range[d].hi;
            placing->extent[d] = range[d].hi - range[d].lo;
            volume *= placing->extent[d];
        }
        if (inside && region->placing) *placing = region->placing[b];
        if (inside) return &region->boxes[b];
        before += volume;
    }
    BUG("an element lies outside of the region that holds it");
}

/* Sets the strides of the common factors of dimension `dim` from those of the layout's factors. */
static void common_strides(const CommonView *view, const Layout *layout, int dim,
                           const int64_t *along, int64_t *strides) {
    Shape own = layout_view(layout, view->shape);
    int first, last = view_factors(layout, dim, &first), begin,
               end = common_factors(view, dim, &begin);
    int64_t weight = 1; // stride of the layout's factor v
    int v = last - 1;
    for (int f = end - 1; f >= begin; f--) {
        while (!view->flat[dim] && v > first && view->weight[f] >= weight * own.extent[v])
            weight *= own.extent[v--];
        strides[f] = v >= first ? view->weight[f] / weight * along[v] : 0;
    }
}

int64_t view_storage(const CommonView *view, const Holding *holding, const int64_t *corner,
                     int64_t *strides) {
    int64_t own[LAYOUT_MAX_RANK], along[LAYOUT_MAX_RANK], step = 1;
    Placing placing;
    own_place(view, holding->layout, corner, own);
    const Box *box = box_at(holding->region, own, &placing);
    int64_t offset = placing.at;
    for (int v = holding->region->rank - 1; v >= 0; v--) {
        along[v] = step;
        offset += (own[v] - box->dim[v].lo) * step;
        step *= placing.extent[v];
    }
    for (int d = 0; d < view->shape.rank; d++)
        common_strides(view, holding->layout, d, along, strides);
    return offset;
}

bool view_same_storage(const CommonView *view, const Holding *a, const Holding *b,
                       const int64_t *corner, const int64_t *extents) {
    int64_t first[VIEW_MAX_RANK], second[VIEW_MAX_RANK];
    if (view_storage(view, a, corner, first) != view_storage(view, b, corner, second)) return false;
    for (int f = 0; f < view->rank; f++)
        if (extents[f] > 1 && first[f] != second[f]) return false;
    return true;
}
