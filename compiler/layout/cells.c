#include "layout/cells.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A device and where its piece begins among the pieces. */
typedef struct Member {
    int device, piece;
} Member;

/* The boxes of a piece in the common view: `count` times `rank` ranges. */
typedef struct Boxes {
    int count;
    const Range *ranges;
} Boxes;

typedef Array(Range) Ranges;

/* A piece that holds a cell, in the list of the cell. */
typedef struct Entry Entry;
struct Entry {
    int piece;
    Entry *next;
};

/* ---- the common view ---- */

/* The factors of dimension `dim` in the numbering of a layout: the first goes to *first, the result is past the last. */
static int view_factors(const Layout *layout, int dim, int *first)
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

/* Refines a dimension as far as both layouts need; where their factors do not nest, the dimension stays whole. */
static void refine_dimension(Cells *cells, int dim)
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

/* The factors of the common view that belong to a dimension. */
static int common_factors(const Cells *cells, int dim, int *first)
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

/* Appends the boxes, over `count` factors, of the range [lo, hi) of their product; `prefix` has `before` ranges that go in front of each. */
static void split_range(Arena *arena, Ranges *out, const Range *prefix, int before, const int64_t *extents, int count, int64_t lo, int64_t hi)
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
            split_range(cells->arena, &grown, list.count ? list.at + i * (begin - first) : NULL, begin - first, cells->extent + begin, at - begin, range[f].lo, range[f].hi);
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
        lists[d] = cells->flat[d] ? flat_ranges(cells, part, box->dim + first, last - first) : nested_ranges(cells, part, box->dim + first, last - first, d);
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

static Boxes common_boxes(const Cells *cells, Side side, const Piece *piece)
{
    Ranges ranges = {0};
    for (int b = 0; b < piece->region->box_count; b++)
        add_common_boxes(cells, cells->side[side].layout, &piece->region->boxes[b], &ranges);
    return (Boxes){cells->rank ? ranges.count / cells->rank : piece->region->box_count, ranges.at};
}

/* ---- pieces ---- */

/* The smallest device of each replica, and of each contribution of each replica. */
typedef struct Labels {
    int *replica, *partial;
    int *offset; // by replica, into `partial`
} Labels;

static Labels labels_of(Arena *arena, const Layout *layout, const Region *regions, const int *devices, int count)
{
    Labels labels = {arena_array(arena, int, layout->group_count + 1), arena_array(arena, int, count + 1), arena_array(arena, int, layout->group_count + 2)};
    for (int i = 0; i < count; i++)
        if (labels.offset[regions[i].replica + 1] <= regions[i].partial)
            labels.offset[regions[i].replica + 1] = regions[i].partial + 1;
    for (int r = 0; r < layout->group_count; r++) {
        labels.offset[r + 1] += labels.offset[r];
        labels.replica[r] = INT32_MAX;
    }
    for (int i = 0; i <= count; i++)
        labels.partial[i] = INT32_MAX;
    for (int i = 0; i < count; i++) {
        int *replica = &labels.replica[regions[i].replica], *partial = &labels.partial[labels.offset[regions[i].replica] + regions[i].partial];
        *replica = devices[i] < *replica ? devices[i] : *replica;
        *partial = devices[i] < *partial ? devices[i] : *partial;
    }
    return labels;
}

typedef struct PieceKey {
    void *bytes;
    int piece;
    UT_hash_handle hh;
} PieceKey;

/* What makes two devices one piece, as bytes. */
static size_t piece_key(const Region *region, int replica, int partial, int64_t *key)
{
    size_t n = 0;
    key[n++] = replica;
    key[n++] = partial;
    for (int b = 0; b < region->box_count; b++)
        for (int d = 0; d < region->rank; d++) {
            key[n++] = region->boxes[b].dim[d].lo;
            key[n++] = region->boxes[b].dim[d].hi;
        }
    return n * sizeof *key;
}

static const int64_t *storage_of(Arena *arena, const Region *region)
{
    int64_t *storage = arena_array(arena, int64_t, region->box_count + 1);
    for (int b = 0; b < region->box_count; b++) {
        int64_t volume = 1;
        for (int d = 0; d < region->rank; d++)
            volume *= region->boxes[b].dim[d].hi - region->boxes[b].dim[d].lo;
        storage[b + 1] = storage[b] + volume;
    }
    return storage;
}

static int compare_members(const void *a, const void *b)
{
    const Member *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

/* Fills the side's devices, in ascending order, with their pieces. */
static void index_devices(Arena *arena, CellSide *side, Member *members, int count)
{
    qsort(members, (size_t)count, sizeof *members, compare_members);
    int *devices = arena_array(arena, int, count), *pieces = arena_array(arena, int, count);
    for (int i = 0; i < count; i++) {
        devices[i] = members[i].device;
        pieces[i] = members[i].piece;
    }
    side->devices = devices;
    side->piece_of = pieces;
    side->device_count = count;
}

/* The piece of each device goes to `members`, the number of devices a piece to `counts`. */
static int find_pieces(Arena *arena, const CellSide *side, const Region *regions, Member *members, int count, int *counts, const int *devices)
{
    Labels labels = labels_of(arena, side->layout, regions, devices, count);
    PieceKey *table = NULL, *found;
    int pieces = 0, most = 0;
    for (int i = 0; i < count; i++)
        most = regions[i].box_count > most ? regions[i].box_count : most;
    int64_t *key = arena_array(arena, int64_t, 2 + 2 * (most + 1) * (regions ? regions[0].rank + 1 : 1));
    bool partial = side->partial != STATE_DUP;
    for (int i = 0; i < count; i++) {
        const Region *region = &regions[i];
        size_t size = piece_key(region, partial ? labels.replica[region->replica] : 0, partial ? labels.partial[labels.offset[region->replica] + region->partial] : 0, key);
        HASH_FIND(hh, table, key, size, found);
        if (!found) {
            found = arena_new(arena, PieceKey);
            *found = (PieceKey){.bytes = arena_copy(arena, key, size), .piece = pieces++};
            HASH_ADD_KEYPTR(hh, table, found->bytes, size, found);
        }
        members[i] = (Member){devices[i], found->piece};
        counts[found->piece]++;
    }
    HASH_CLEAR(hh, table);
    return pieces;
}

static void make_pieces(Arena *arena, CellSide *side, Shape shape)
{
    int count;
    const int *devices = layout_devices(arena, side->layout, &count);
    const Region *regions = layout_regions(arena, side->layout, shape, &count);
    Member *members = arena_array(arena, Member, count);
    int *counts = arena_array(arena, int, count);
    side->partial = layout_partial(side->layout);
    side->piece_count = find_pieces(arena, side, regions, members, count, counts, devices);
    Piece *pieces = arena_array(arena, Piece, side->piece_count);
    Labels labels = labels_of(arena, side->layout, regions, devices, count);
    for (int i = 0; i < count; i++) {
        Piece *piece = &pieces[members[i].piece];
        if (!piece->region) {
            piece->region = &regions[i];
            piece->devices = arena_array(arena, int, counts[members[i].piece]);
            piece->storage = storage_of(arena, &regions[i]);
            piece->replica = side->partial == STATE_DUP ? 0 : labels.replica[regions[i].replica];
            piece->partial = side->partial == STATE_DUP ? 0 : labels.partial[labels.offset[regions[i].replica] + regions[i].partial];
        }
        piece->devices[piece->device_count++] = devices[i];
    }
    side->pieces = pieces;
    index_devices(arena, side, members, count);
}

int cells_piece_of(const Cells *cells, Side which, int device)
{
    const CellSide *side = &cells->side[which];
    int low = 0, high = side->device_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (side->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < side->device_count && side->devices[low] == device ? side->piece_of[low] : -1;
}

/* ---- the grid ---- */

static int compare_numbers(const void *a, const void *b)
{
    return -compare_down(a, b);
}

/* The places of cuts along factor `f`, in order, each once. */
static void collect_cuts(Cells *cells, Boxes *const *boxes, int f)
{
    Array(int64_t) cuts = {0};
    array_push(cells->arena, &cuts, 0);
    array_push(cells->arena, &cuts, cells->extent[f]);
    for (int side = 0; side < 2; side++)
        for (int p = 0; p < cells->side[side].piece_count; p++)
            for (int b = 0; b < boxes[side][p].count; b++) {
                Range range = boxes[side][p].ranges[b * cells->rank + f];
                if (range.lo)
                    array_push(cells->arena, &cuts, range.lo);
                if (range.hi != cells->extent[f])
                    array_push(cells->arena, &cuts, range.hi);
            }
    qsort(cuts.at, (size_t)cuts.count, sizeof *cuts.at, compare_numbers);
    int kept = 0;
    for (int i = 0; i < cuts.count; i++)
        if (!i || cuts.at[i] != cuts.at[kept - 1])
            cuts.at[kept++] = cuts.at[i];
    cells->cuts[f] = cuts.at;
    cells->cut_count[f] = kept;
}

static int cut_index(const Cells *cells, int f, int64_t place)
{
    int low = 0, high = cells->cut_count[f] - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (cells->cuts[f][middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int cell_count(const Cells *cells)
{
    int64_t count = 1;
    for (int f = 0; f < cells->rank; f++) {
        count *= cells->cut_count[f] - 1;
        if (count > 1 << 28)
            BUG("a conversion has more than %d cells", 1 << 28);
    }
    return (int)count;
}

/* The intervals of the grid in which a cell lies, one a factor. */
static void cell_index(const Cells *cells, int cell, int *index)
{
    for (int f = cells->rank - 1; f >= 0; f--) {
        index[f] = cell % (cells->cut_count[f] - 1);
        cell /= cells->cut_count[f] - 1;
    }
}

/* Enters a piece into the lists of all cells of one of its boxes. */
static void enter_box(const Cells *cells, const Range *box, int piece, Entry **lists)
{
    int begin[CELL_MAX_RANK], width[CELL_MAX_RANK];
    int64_t total = 1;
    for (int f = 0; f < cells->rank; f++) {
        begin[f] = cut_index(cells, f, box[f].lo);
        width[f] = cut_index(cells, f, box[f].hi) - begin[f];
        total *= width[f];
    }
    Entry *entries = arena_array(cells->arena, Entry, total);
    for (int64_t i = 0; i < total; i++) {
        int64_t cell = 0, step = 1, rest = i;
        for (int f = cells->rank - 1; f >= 0; f--) {
            cell += (begin[f] + rest % width[f]) * step;
            rest /= width[f];
            step *= cells->cut_count[f] - 1;
        }
        entries[i] = (Entry){piece, lists[cell]};
        lists[cell] = &entries[i];
    }
}

/* By cell, the pieces of a side that hold it, in order. */
static Entry **enter_pieces(const Cells *cells, const CellSide *side, const Boxes *boxes, int count)
{
    Entry **lists = arena_array(cells->arena, Entry *, count);
    for (int p = side->piece_count - 1; p >= 0; p--)
        for (int b = boxes[p].count - 1; b >= 0; b--)
            enter_box(cells, boxes[p].ranges + b * cells->rank, p, lists);
    return lists;
}

/* ---- bundles ---- */

typedef struct BundleKey {
    Array(int) cells;
    int64_t volume;
    int *key; // number of pieces of the first side, those pieces, the second side's
    int size;
    UT_hash_handle hh;
} BundleKey;

static int entry_key(Entry *const *from, Entry *const *to, int cell, int *key)
{
    int n = 1;
    for (const Entry *e = from[cell]; e; e = e->next)
        key[n++] = e->piece;
    key[0] = n - 1;
    for (const Entry *e = to[cell]; e; e = e->next)
        key[n++] = e->piece;
    return n;
}

int64_t cell_extents(const Cells *cells, int cell, int64_t *extents)
{
    int index[CELL_MAX_RANK];
    cell_index(cells, cell, index);
    int64_t volume = 1;
    for (int f = 0; f < cells->rank; f++) {
        extents[f] = cells->cuts[f][index[f] + 1] - cells->cuts[f][index[f]];
        volume *= extents[f];
    }
    return volume;
}

static BundleKey *find_bundle(const Cells *cells, BundleKey **table, const int *key, int size)
{
    BundleKey *found;
    HASH_FIND(hh, *table, key, sizeof(int) * (size_t)size, found);
    if (!found) {
        found = arena_new(cells->arena, BundleKey);
        found->key = arena_copy(cells->arena, key, sizeof(int) * (size_t)size);
        found->size = size;
        HASH_ADD_KEYPTR(hh, *table, found->key, sizeof(int) * (size_t)size, found);
    }
    return found;
}

static void make_bundles(Cells *cells, Entry *const *from, Entry *const *to, int count)
{
    int *key = arena_array(cells->arena, int, 1 + cells->side[0].piece_count + cells->side[1].piece_count);
    BundleKey *table = NULL;
    int64_t extents[CELL_MAX_RANK];
    for (int cell = 0; cell < count; cell++) {
        BundleKey *found = find_bundle(cells, &table, key, entry_key(from, to, cell, key));
        array_push(cells->arena, &found->cells, cell);
        found->volume += cell_extents(cells, cell, extents);
    }
    Bundle *bundles = arena_array(cells->arena, Bundle, HASH_COUNT(table));
    for (BundleKey *at = table; at; at = at->hh.next) {
        int first = at->key[0];
        bundles[cells->bundle_count++] = (Bundle){.cell_count = at->cells.count, .cells = at->cells.at, .volume = at->volume,
                                                  .holder_count = {first, at->size - 1 - first}, .holders = {at->key + 1, at->key + 1 + first}};
    }
    cells->bundles = bundles;
    HASH_CLEAR(hh, table);
}

static int64_t shape_volume(Shape shape)
{
    int64_t volume = 1;
    for (int d = 0; d < shape.rank; d++)
        volume *= shape.extent[d];
    return volume;
}

const Cells *cells_of(Arena *arena, Shape shape, const Layout *from, const Layout *to)
{
    Cells *cells = arena_new(arena, Cells);
    cells->arena = arena;
    cells->shape = (Shape){shape.rank, arena_copy(arena, shape.extent, sizeof(int64_t) * (size_t)shape.rank)};
    cells->side[SIDE_FROM].layout = from;
    cells->side[SIDE_TO].layout = to;
    for (int side = 0; side < 2; side++)
        make_pieces(arena, &cells->side[side], shape);
    if (!shape_volume(shape))
        return cells;
    for (int d = 0; d < shape.rank; d++)
        refine_dimension(cells, d);
    Boxes *boxes[2];
    for (int side = 0; side < 2; side++) {
        boxes[side] = arena_array(arena, Boxes, cells->side[side].piece_count);
        for (int p = 0; p < cells->side[side].piece_count; p++)
            boxes[side][p] = common_boxes(cells, side, &cells->side[side].pieces[p]);
    }
    for (int f = 0; f < cells->rank; f++)
        collect_cuts(cells, boxes, f);
    int count = cell_count(cells);
    Entry **lists[2];
    for (int side = 0; side < 2; side++)
        lists[side] = enter_pieces(cells, &cells->side[side], boxes[side], count);
    make_bundles(cells, lists[0], lists[1], count);
    return cells;
}

/* ---- storage ---- */

/* The coordinates of a cell's first element in the numbering of a layout. */
static void cell_corner(const Cells *cells, const Layout *layout, int cell, int64_t *corner)
{
    int index[CELL_MAX_RANK];
    cell_index(cells, cell, index);
    Shape view = layout_view(layout, cells->shape);
    for (int d = 0, f = 0; d < cells->shape.rank; d++) {
        int64_t place = 0;
        for (; f < cells->rank && cells->dim[f] == d; f++)
            place += cells->cuts[f][index[f]] * cells->weight[f];
        int first, last = view_factors(layout, d, &first);
        for (int v = last - 1; v >= first; v--) {
            corner[v] = place % view.extent[v];
            place /= view.extent[v];
        }
    }
}

/* The box of a region in which a place lies. */
static int box_at(const Region *region, const int64_t *place)
{
    for (int b = 0; b < region->box_count; b++) {
        bool inside = true;
        for (int d = 0; d < region->rank && inside; d++)
            inside = region->boxes[b].dim[d].lo <= place[d] && place[d] < region->boxes[b].dim[d].hi;
        if (inside)
            return b;
    }
    BUG("a cell lies outside of the piece that holds it");
}

/* Strides along the factors of the common view that belong to dimension `dim`, from those along the view's factors. */
static void common_strides(const Cells *cells, const Layout *layout, int dim, const int64_t *along, int64_t *strides)
{
    Shape view = layout_view(layout, cells->shape);
    int first, last = view_factors(layout, dim, &first), begin, end = common_factors(cells, dim, &begin);
    int64_t weight = 1; // of the view's factor v
    int v = last - 1;
    for (int f = end - 1; f >= begin; f--) {
        while (!cells->flat[dim] && v > first && cells->weight[f] >= weight * view.extent[v])
            weight *= view.extent[v--];
        strides[f] = v >= first ? cells->weight[f] / weight * along[v] : 0;
    }
}

int64_t cell_storage(const Cells *cells, Side side, int piece, int cell, int64_t *strides)
{
    const Layout *layout = cells->side[side].layout;
    const Piece *holder = &cells->side[side].pieces[piece];
    int64_t corner[LAYOUT_MAX_RANK], along[LAYOUT_MAX_RANK];
    cell_corner(cells, layout, cell, corner);
    int b = box_at(holder->region, corner);
    int64_t offset = holder->storage[b], step = 1;
    for (int v = holder->region->rank - 1; v >= 0; v--) {
        Range range = holder->region->boxes[b].dim[v];
        along[v] = step;
        offset += (corner[v] - range.lo) * step;
        step *= range.hi - range.lo;
    }
    for (int d = 0; d < cells->shape.rank; d++)
        common_strides(cells, layout, d, along, strides);
    return offset;
}

/* ---- equality ---- */

/* Whether two pieces have the same devices and, where contributions matter, stand for the same one. */
static bool same_holders(const Cells *cells, int from, int to)
{
    const Piece *a = &cells->side[SIDE_FROM].pieces[from], *b = &cells->side[SIDE_TO].pieces[to];
    if (a->device_count != b->device_count || a->replica != b->replica || a->partial != b->partial)
        return false;
    for (int i = 0; i < a->device_count; i++)
        if (cells_piece_of(cells, SIDE_TO, a->devices[i]) != to)
            return false;
    return true;
}

bool cells_same_storage(const Cells *cells, int cell, int from, int to)
{
    int64_t extents[CELL_MAX_RANK], a[CELL_MAX_RANK], b[CELL_MAX_RANK];
    cell_extents(cells, cell, extents);
    if (cell_storage(cells, SIDE_FROM, from, cell, a) != cell_storage(cells, SIDE_TO, to, cell, b))
        return false;
    for (int f = 0; f < cells->rank; f++)
        if (extents[f] > 1 && a[f] != b[f])
            return false;
    return true;
}

/* Whether every piece of the first side that holds the bundle is one of the second, too. */
static bool bundle_equal(const Cells *cells, const Bundle *bundle)
{
    if (bundle->holder_count[0] != bundle->holder_count[1])
        return false;
    for (int h = 0; h < bundle->holder_count[0]; h++) {
        int from = bundle->holders[0][h], to = cells_piece_of(cells, SIDE_TO, cells->side[SIDE_FROM].pieces[from].devices[0]);
        if (to < 0 || !same_holders(cells, from, to))
            return false;
        for (int c = 0; c < bundle->cell_count; c++) {
            bool held = false;
            for (int k = 0; k < bundle->holder_count[1]; k++)
                held = held || bundle->holders[1][k] == to;
            if (!held || !cells_same_storage(cells, bundle->cells[c], from, to))
                return false;
        }
    }
    return true;
}

bool cells_equal(const Cells *cells)
{
    if (cells->side[0].partial != cells->side[1].partial)
        return false;
    for (int b = 0; b < cells->bundle_count; b++)
        if (!bundle_equal(cells, &cells->bundles[b]))
            return false;
    return true;
}
