/* Cuts a tensor where either layout cuts it, and bundles cells with equal holders. */
#include "reshard/intersection/intersection.h"

#include "reshard/reshard.h"

#include "support/intern.h"
#include "support/array.h"

#include <stdlib.h>

/* An entry of a cell's list of holdings. */
typedef struct Entry Entry;
struct Entry {
    int holding;
    Entry *next;
};

/* Sets overlap->cuts[f] to the cuts along factor `f`, ends included, ascending, each once. */
static void collect_cuts(Arena *arena, Overlap *overlap, BoxList *const *boxes, int f) {
    Array(int64_t) cuts = {0};
    array_push(arena, &cuts, 0);
    array_push(arena, &cuts, overlap->view.extent[f]);
    for (int side = 0; side < 2; side++)
        for (int p = 0; p < overlap->side[side].list.count; p++)
            for (int b = 0; b < boxes[side][p].count; b++) {
                Range range = boxes[side][p].ranges[b * overlap->view.rank + f];
                if (range.lo) array_push(arena, &cuts, range.lo);
                if (range.hi != overlap->view.extent[f]) array_push(arena, &cuts, range.hi);
            }
    qsort(cuts.at, (size_t)cuts.count, sizeof *cuts.at, compare_int64s);
    int kept = 0;
    for (int i = 0; i < cuts.count; i++)
        if (!i || cuts.at[i] != cuts.at[kept - 1]) cuts.at[kept++] = cuts.at[i];
    overlap->cuts[f] = cuts.at;
    overlap->cut_count[f] = kept;
}

static int cut_index(const Overlap *overlap, int f, int64_t place) {
    int low = 0, high = overlap->cut_count[f] - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (overlap->cuts[f][middle] < place) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Prepends a holding to the lists of all cells of one of its boxes. */
static void enter_box(Arena *arena, const Overlap *overlap, const Range *box, int holding,
                      Entry **lists) {
    int begin[VIEW_MAX_RANK], width[VIEW_MAX_RANK];
    int64_t total = 1;
    for (int f = 0; f < overlap->view.rank; f++) {
        begin[f] = cut_index(overlap, f, box[f].lo);
        width[f] = cut_index(overlap, f, box[f].hi) - begin[f];
        total *= width[f];
    }
    Entry *entries = arena_array(arena, Entry, total);
    for (int64_t i = 0; i < total; i++) {
        int64_t cell = 0, step = 1, rest = i;
        for (int f = overlap->view.rank - 1; f >= 0; f--) {
            cell += (begin[f] + rest % width[f]) * step;
            rest /= width[f];
            step *= overlap->cut_count[f] - 1;
        }
        entries[i] = (Entry){holding, lists[cell]};
        lists[cell] = &entries[i];
    }
}

/* Returns, by cell, the list of a side's holdings that contain the cell, ascending. */
static Entry **enter_holdings(Arena *arena, const Overlap *overlap, const BoxList *boxes,
                              int holdings, int count) {
    Entry **lists = arena_array(arena, Entry *, count);
    for (int h = holdings - 1; h >= 0; h--)
        for (int b = boxes[h].count - 1; b >= 0; b--)
            enter_box(arena, overlap, boxes[h].ranges + b * overlap->view.rank, h, lists);
    return lists;
}

/* Writes the key of a cell's bundle: the count and the numbers of the first side's holdings that
 * contain the cell, then the numbers of such holdings of the second side. Returns its length. */
static int entry_key(Entry *const *from, Entry *const *to, int cell, int *key) {
    int n = 1;
    for (const Entry *e = from[cell]; e; e = e->next) key[n++] = e->holding;
    key[0] = n - 1;
    for (const Entry *e = to[cell]; e; e = e->next) key[n++] = e->holding;
    return n;
}

int64_t overlap_cell(const Overlap *overlap, int cell, int64_t *corner, int64_t *extents) {
    int64_t volume = 1;
    for (int f = overlap->view.rank - 1; f >= 0; f--) {
        int intervals = overlap->cut_count[f] - 1;
        const int64_t *cut = &overlap->cuts[f][cell % intervals];
        corner[f] = cut[0];
        extents[f] = cut[1] - cut[0];
        volume *= extents[f];
        cell /= intervals;
    }
    return volume;
}

/* Adds the bundle of a key; `lists` interns lists of holders. Returns the new number of bundles. */
static int add_bundle(Arena *arena, Overlap *overlap, Intern *lists, const int *key, int size) {
    int from = key[0], to = size - 1 - from;
    Bundle bundle = {.holder_count = {from, to}};
    bundle.holders[SIDE_FROM] = intern(lists, key + 1, sizeof *key * (size_t)from);
    bundle.holders[SIDE_TO] = intern(lists, key + 1 + from, sizeof *key * (size_t)to);
    array_push(arena, &overlap->bundles, bundle);
    return overlap->bundles.count;
}

static void make_bundles(Arena *arena, Overlap *overlap, Entry *const *from, Entry *const *to,
                         int count) {
    int *key =
        arena_array(arena, int, 1 + overlap->side[0].list.count + overlap->side[1].list.count);
    int64_t corner[VIEW_MAX_RANK], extents[VIEW_MAX_RANK];
    Intern *known = intern_create(arena), *lists = intern_create(arena);
    for (int cell = 0; cell < count; cell++) {
        int size = entry_key(from, to, cell, key);
        intptr_t *number = intern_slot(known, key, sizeof *key * (size_t)size);
        if (!*number) *number = add_bundle(arena, overlap, lists, key, size);
        Bundle *bundle = &overlap->bundles.at[*number - 1];
        array_push(arena, &bundle->cells, cell);
        bundle->volume += overlap_cell(overlap, cell, corner, extents);
    }
}

/* Makes the common view, the holdings, their boxes and the grid. Returns the number of cells (any
 * number above RESHARD_MOST_CELLS if there are more), 0 if no device holds an element. */
static int64_t make_grid(Arena *arena, Shape shape, const Layout *const *layouts, Overlap *overlap,
                         BoxList **boxes) {
    int64_t cells = 1;
    int boxed = 0;
    overlap->view = view_common(shape, layouts[SIDE_FROM], layouts[SIDE_TO]);
    for (int side = 0; side < 2; side++) {
        overlap->side[side] = holdings_of(arena, layouts[side], shape);
        boxes[side] = arena_array(arena, BoxList, overlap->side[side].list.count);
        for (int h = 0; h < overlap->side[side].list.count; h++) {
            boxes[side][h] = view_boxes(arena, &overlap->view, &overlap->side[side].list.at[h]);
            boxed += boxes[side][h].count;
        }
    }
    for (int f = 0; f < overlap->view.rank && boxed && cells <= RESHARD_MOST_CELLS; f++) {
        collect_cuts(arena, overlap, boxes, f);
        cells *= overlap->cut_count[f] - 1;
    }
    return boxed ? cells : 0;
}

bool conversion_plannable(const Conversion *conversion) {
    Arena *scratch = arena_create();
    Overlap overlap = {0};
    BoxList *boxes[2];
    bool plannable = make_grid(scratch, conversion->shape,
                               (const Layout *const[]){conversion->from, conversion->to}, &overlap,
                               boxes) <= RESHARD_MOST_CELLS;
    arena_destroy(scratch);
    return plannable;
}

const Overlap *overlap_of(Arena *arena, Shape shape, const Layout *from, const Layout *to) {
    Overlap *overlap = arena_new(arena, Overlap);
    BoxList *boxes[2];
    Entry **lists[2];
    shape.extent = arena_copy(arena, shape.extent, sizeof *shape.extent * (size_t)shape.rank);
    int64_t count = make_grid(arena, shape, (const Layout *const[]){from, to}, overlap, boxes);
    if (count > RESHARD_MOST_CELLS) BUG("a conversion has more than %d cells", RESHARD_MOST_CELLS);
    for (int side = 0; side < 2 && count; side++)
        lists[side] =
            enter_holdings(arena, overlap, boxes[side], overlap->side[side].list.count, (int)count);
    if (count) make_bundles(arena, overlap, lists[SIDE_FROM], lists[SIDE_TO], (int)count);
    return overlap;
}

bool overlap_stays(const Overlap *overlap, const Bundle *bundle, int device) {
    int from = holdings_find(&overlap->side[SIDE_FROM], device),
        to = holdings_find(&overlap->side[SIDE_TO], device);
    if (from < 0 || to < 0) return false;
    const Holding *before = &overlap->side[SIDE_FROM].list.at[from],
                  *after = &overlap->side[SIDE_TO].list.at[to];
    bool held = false;
    for (int h = 0; h < bundle->holder_count[SIDE_FROM] && !held; h++)
        held = bundle->holders[SIDE_FROM][h] == from;
    held = held && before->region->volume == after->region->volume;
    for (int c = 0; c < bundle->cells.count && held; c++) {
        int64_t corner[VIEW_MAX_RANK], extents[VIEW_MAX_RANK];
        overlap_cell(overlap, bundle->cells.at[c], corner, extents);
        held = view_same_storage(&overlap->view, before, after, corner, extents);
    }
    return held;
}
