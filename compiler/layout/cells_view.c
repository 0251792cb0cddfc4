/* The common view of two layouts, and their boxes in it. */
#include "layout/cells_build.h"

#include <stdlib.h>
#include <string.h>

typedef Array(Range) Ranges;

/* ---- the view ---- */

int view_factors(const Layout *layout, int dim, int *first)
{
    if (!layout->view_rank) {
        *first = dim;
        return dim + 1;
    }
    int f = 0;
    while (f < layout->view_rank && layout->view_dim[f] < dim)
        f++;
    *first = f;
    while (f < layout->view_rank && layout->view_dim[f] == dim)
        f++;
    return f;
}

static int compare_down(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The strides of all factors of a dimension in both layouts, and its extent, from the largest, each once. */
static int collect_strides(const Cells *cells, int dim, int64_t *strides)
{
    int count = 0;
    for (int side = 0; side < 2; side++) {
        const Layout *layout = cells->side[side].layout;
        Shape view = layout_view(layout, cells->shape);
        int first, last = view_factors(layout, dim, &first);
        int64_t stride = 1;
        for (int f = last - 1; f >= first; f--) {
            strides[count++] = stride;
            stride *= view.extent[f];
        }
        strides[count++] = stride;
    }
    qsort(strides, (size_t)count, sizeof *strides, compare_down);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!i || strides[i] != strides[kept - 1])
            strides[kept++] = strides[i];
    return kept;
}

static void add_factor(Cells *cells, int dim, int64_t extent, int64_t weight)
{
    cells->dim[cells->rank] = dim;
    cells->extent[cells->rank] = extent;
    cells->weight[cells->rank++] = weight;
}

void cells_refine(Cells *cells, int dim)
{
    int64_t strides[2 * LAYOUT_MAX_RANK + 2];
    int count = collect_strides(cells, dim, strides);
    bool nests = true;
    for (int i = 0; i + 1 < count; i++)
        nests = nests && strides[i] % strides[i + 1] == 0;
    cells->flat[dim] = !nests;
    if (!nests)
        add_factor(cells, dim, cells->shape.extent[dim], 1);
    else if (count == 1)
        add_factor(cells, dim, 1, 1);
    else
        for (int i = 0; i + 1 < count; i++)
            add_factor(cells, dim, strides[i] / strides[i + 1], strides[i + 1]);
}

int common_factors(const Cells *cells, int dim, int *first)
{
    int f = 0;
    while (f < cells->rank && cells->dim[f] < dim)
        f++;
    *first = f;
    while (f < cells->rank && cells->dim[f] == dim)
        f++;
    return f;
}

/* ---- boxes of one view as boxes of the common one ---- */

/* Appends the boxes, over `count` factors, of the range [lo, hi) of their product; `prefix` has `before` ranges that go in front of each.
 */
static void split_range(Arena *arena, Ranges *out, const Range *prefix, int before, const int64_t *extents, int count, int64_t lo,
                        int64_t hi)
{
    Range head[CELL_MAX_RANK];
    if (before)
        memcpy(head, prefix, sizeof(Range) * (size_t)before);
    if (count <= 1) {
        head[before] = (Range){lo, hi};
        for (int i = 0; i < before + count; i++)
            array_push(arena, out, head[i]);
        return;
    }
    int64_t inner = 1;
    for (int i = 1; i < count; i++)
        inner *= extents[i];
    int64_t a = lo / inner, b = hi / inner;
    if (lo % inner) {
        head[before] = (Range){a, a + 1};
        split_range(arena, out, head, before + 1, extents + 1, count - 1, lo % inner, a == b ? hi % inner : inner);
        if (a++ == b)
            return;
    }
    if (a < b) {
        head[before] = (Range){a, b};
        split_range(arena, out, head, before + 1, extents + 1, count - 1, 0, inner);
    }
    if (hi % inner) {
        head[before] = (Range){b, b + 1};
        split_range(arena, out, head, before + 1, extents + 1, count - 1, 0, hi % inner);
    }
}

const Range *range_boxes(Arena *arena, const int64_t *extents, int rank, int64_t lo, int64_t hi, int *count)
{
    Ranges ranges = {0};
    split_range(arena, &ranges, NULL, 0, extents, rank, lo, hi);
    *count = rank ? ranges.count / rank : 1;
    return ranges.at;
}

/* The part of a box that lies in one dimension, in the common factors of that dimension, when the views nest. */
static Ranges nested_ranges(const Cells *cells, Shape view, const Range *range, int factors, int dim)
{
    Ranges list = {0};
    int first, last = common_factors(cells, dim, &first), at = first, lists = 1;
    for (int f = 0; f < factors; f++) {
        int begin = at;
        for (int64_t extent = 1; extent < view.extent[f]; at++)
            extent *= cells->extent[at];
        if (begin == at)
            continue;
        Ranges grown = {0};
        for (int i = 0; i < lists; i++)
            split_range(cells->arena, &grown, list.count ? list.at + i * (begin - first) : NULL, begin - first, cells->extent + begin,
                        at - begin, range[f].lo, range[f].hi);
        list = grown;
        lists = list.count / (at - first);
    }
    for (; at < last && !list.count; at++)
        array_push(cells->arena, &list, (Range){0, 1});
    return list;
}

/* The same as runs along the whole dimension, when they do not. */
static Ranges flat_ranges(const Cells *cells, Shape view, const Range *range, int factors)
{
    Ranges list = {0};
    int64_t stride = 1, runs = 1;
    int last = factors - 1;
    for (; last > 0 && range[last].lo == 0 && range[last].hi == view.extent[last]; last--)
        stride *= view.extent[last];
    for (int f = 0; f < last; f++)
        runs *= range[f].hi - range[f].lo;
    for (int64_t run = 0; run < runs; run++) {
        int64_t begin = 0, weight = stride * view.extent[last], rest = run;
        for (int f = last - 1; f >= 0; f--) {
            int64_t width = range[f].hi - range[f].lo;
            begin += (range[f].lo + rest % width) * weight;
            rest /= width;
            weight *= view.extent[f];
        }
        array_push(cells->arena, &list, (Range){begin + range[last].lo * stride, begin + range[last].hi * stride});
    }
    return list;
}

/* Appends a box of a layout's view as boxes of the common view. */
static void add_common_boxes(const Cells *cells, const Layout *layout, const Box *box, Ranges *out)
{
    Shape view = layout_view(layout, cells->shape);
    Ranges lists[LAYOUT_MAX_RANK];
    int widths[LAYOUT_MAX_RANK], total = 1;
    for (int d = 0; d < cells->shape.rank; d++) {
        int first, last = view_factors(layout, d, &first), begin, end = common_factors(cells, d, &begin);
        Shape part = {last - first, view.extent + first};
        lists[d] = cells->flat[d] ? flat_ranges(cells, part, box->dim + first, last - first)
                                  : nested_ranges(cells, part, box->dim + first, last - first, d);
        widths[d] = end - begin;
        total *= lists[d].count / widths[d];
    }
    for (int i = 0; i < total; i++) {
        int index[LAYOUT_MAX_RANK];
        for (int d = cells->shape.rank - 1, rest = i; d >= 0; d--) {
            int count = lists[d].count / widths[d];
            index[d] = rest % count;
            rest /= count;
        }
        for (int d = 0; d < cells->shape.rank; d++)
            for (int w = 0; w < widths[d]; w++)
                array_push(cells->arena, out, lists[d].at[index[d] * widths[d] + w]);
    }
}

Boxes common_boxes(const Cells *cells, Side side, const Piece *piece)
{
    Ranges ranges = {0};
    for (int b = 0; b < piece->region->box_count; b++)
        add_common_boxes(cells, cells->side[side].layout, &piece->region->boxes[b], &ranges);
    return (Boxes){cells->rank ? ranges.count / cells->rank : piece->region->box_count, ranges.at};
}
