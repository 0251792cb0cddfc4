#include "layout/cells_build.h"

#include <stdlib.h>
#include <uthash.h>

/* A piece that holds a cell, in the list of the cell. */
typedef struct Entry Entry;
struct Entry {
    int piece;
    Entry *next;
};

/* ---- the grid ---- */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
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

void cell_index(const Cells *cells, int cell, int *index)
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
            enter_box(cells, cells->rank ? boxes[p].ranges + b * cells->rank : NULL, p, lists);
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
        bundles[cells->bundle_count++] = (Bundle){.cell_count = at->cells.count,
                                                  .cells = at->cells.at,
                                                  .volume = at->volume,
                                                  .holder_count = {first, at->size - 1 - first},
                                                  .holders = {at->key + 1, at->key + 1 + first}};
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
        cells_refine(cells, d);
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
