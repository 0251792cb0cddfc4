/* Compares layouts: they are equal when every device holds the same elements in the same order of
 * storage, and the same contribution. */
#include "layout/view.h"

/* Returns how many elements two boxes share; writes the corner and extents of what they share. */
static int64_t intersect(int rank, const Range *a, const Range *b, int64_t *corner,
                         int64_t *extents) {
    int64_t volume = 1;
    for (int f = 0; f < rank; f++) {
        int64_t hi = a[f].hi < b[f].hi ? a[f].hi : b[f].hi;
        corner[f] = a[f].lo > b[f].lo ? a[f].lo : b[f].lo;
        extents[f] = hi > corner[f] ? hi - corner[f] : 0;
        volume *= extents[f];
    }
    return volume;
}

/* The boxes of a holding. has_box compares box `next` first, since two lists usually have the same
 * order. */
typedef struct BoxSearch {
    const Holding *holding;
    BoxList boxes;
    int next;
} BoxSearch;

/* Returns whether `second` has all elements of a box of `first`, in the same order of storage. */
static bool has_box(const CommonView *view, const Holding *first, const Range *box,
                    BoxSearch *second) {
    const BoxList *boxes = &second->boxes;
    int64_t corner[VIEW_MAX_RANK], extents[VIEW_MAX_RANK],
        left = intersect(view->rank, box, box, corner, extents);
    for (int i = 0; i < boxes->count && left; i++) {
        const Range *own = boxes->ranges + second->next * view->rank;
        int64_t common = intersect(view->rank, box, own, corner, extents);
        if (common && !view_same_storage(view, first, second->holding, corner, extents))
            return false;
        left -= common;
        second->next = (second->next + 1) % boxes->count;
    }
    return !left;
}

static bool same_elements(Arena *arena, const CommonView *view, const Holding *a,
                          const Holding *b) {
    if (a->region->volume != b->region->volume) return false;
    BoxList first = view_boxes(arena, view, a);
    BoxSearch second = {b, view_boxes(arena, view, b), 0};
    for (int i = 0; i < first.count; i++)
        if (!has_box(view, a, first.ranges + i * view->rank, &second)) return false;
    return true;
}

/* Returns whether others->list.at[number] has a holding's devices, replica and contribution. */
static bool same_devices(const Holding *holding, const Holdings *others, int number) {
    const Holding *other = &others->list.at[number];
    if (holding->devices.count != other->devices.count || holding->replica != other->replica ||
        holding->partial != other->partial)
        return false;
    for (int i = 0; i < holding->devices.count; i++)
        if (holdings_find(others, holding->devices.at[i]) != number) return false;
    return true;
}

/* Returns the number of holdings that have elements. */
static int count_held(const Holdings *holdings) {
    int count = 0;
    for (int h = 0; h < holdings->list.count; h++) count += holdings->list.at[h].region->volume > 0;
    return count;
}

static bool holdings_equal(Arena *arena, const CommonView *view, const Holdings *a,
                           const Holdings *b) {
    if (a->partial != b->partial || count_held(a) != count_held(b)) return false;
    for (int h = 0; h < a->list.count; h++) {
        const Holding *holding = &a->list.at[h];
        int other = holding->region->volume ? holdings_find(b, holding->devices.at[0]) : -1;
        if (holding->region->volume && (other < 0 || !same_devices(holding, b, other) ||
                                        !same_elements(arena, view, holding, &b->list.at[other])))
            return false;
    }
    return true;
}

bool layout_equal(const Layout *a, const Layout *b, Shape shape) {
    if (a == b) return true;
    Arena *scratch = arena_create();
    CommonView view = view_common(shape, a, b);
    Holdings first = holdings_of(scratch, a, shape), second = holdings_of(scratch, b, shape);
    bool equal = holdings_equal(scratch, &view, &first, &second);
    arena_destroy(scratch);
    return equal;
}
