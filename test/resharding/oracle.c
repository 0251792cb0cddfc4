#include "oracle.h"

#include "generate.h"
#include "support/arena.h"

/* Enters a box: the places of its elements follow one another from `next` on. */
static int enter_box(const Box *box, Shape view, int *offset, int next) {
    int count = 1;
    for (int d = 0; d < view.rank; d++) count *= (int)(box->dim[d].hi - box->dim[d].lo);
    for (int i = 0; i < count; i++) {
        int element = 0, step = 1, rest = i;
        for (int d = view.rank - 1; d >= 0; d--) {
            int width = (int)(box->dim[d].hi - box->dim[d].lo);
            element += ((int)box->dim[d].lo + rest % width) * step;
            rest /= width;
            step *= (int)view.extent[d];
        }
        offset[element] = next++;
    }
    return next;
}

/* Whether a box has an element; its coordinates go to `place`. */
static bool has_element(const Box *box, Shape view, int element, int64_t *place) {
    bool has = true;
    for (int d = view.rank - 1; d >= 0; d--) {
        place[d] = element % view.extent[d];
        element /= (int)view.extent[d];
        has = has && box->dim[d].lo <= place[d] && place[d] < box->dim[d].hi;
    }
    return has;
}

/* Enters a region of folded pieces, in the order of its elements; those of the finest slices of an
 * inner split one slice after another. */
static void enter_folded(const Layout *layout, const Region *region, Shape view, int volume,
                         int *offset) {
    bool sliced = layout->top == TOP_SPLIT && layout->inner;
    int64_t slice = -1, place[LAYOUT_MAX_RANK];
    for (int next = 0; next < region->volume;) {
        int64_t following = INT64_MAX;
        for (int b = 0; b < region->box_count; b++) {
            int64_t lo = sliced ? region->boxes[b].dim[layout->top_dim].lo : 0;
            following = lo > slice && lo < following ? lo : following;
        }
        slice = following;
        for (int e = 0; e < volume; e++)
            for (int b = 0; b < region->box_count; b++)
                if ((!sliced || region->boxes[b].dim[layout->top_dim].lo == slice) &&
                    has_element(&region->boxes[b], view, e, place))
                    offset[e] = next++;
    }
}

Held held_under(Arena *arena, const Layout *layout, Shape shape) {
    Held held = {
        .volume = 1, .partial = layout_partial(layout), .replica_count = layout->group_count};
    for (int d = 0; d < shape.rank; d++) held.volume *= (int)shape.extent[d];
    held.devices = layout_devices(arena, layout, &held.device_count);
    Region *regions = arena_array(arena, Region, held.device_count);
    held.regions = regions;
    held.offset = arena_array(arena, int *, held.device_count);
    held.ids = arena_array(arena, uint32_t *, held.replica_count);
    for (int r = 0; r < held.replica_count; r++)
        held.ids[r] = arena_array(arena, uint32_t, held.volume);
    for (int i = 0; i < held.device_count; i++) {
        regions[i] = layout_region(arena, layout, shape, held.devices[i]);
        held.offset[i] = arena_array(arena, int, held.volume);
        for (int e = 0; e < held.volume; e++) held.offset[i][e] = -1;
        if (regions[i].placing)
            enter_folded(layout, &regions[i], layout_view(layout, shape), held.volume,
                         held.offset[i]);
        for (int b = 0, next = 0; b < regions[i].box_count && !regions[i].placing; b++)
            next =
                enter_box(&regions[i].boxes[b], layout_view(layout, shape), held.offset[i], next);
        for (int e = 0; e < held.volume; e++)
            if (held.offset[i][e] >= 0) held.ids[regions[i].replica][e] |= 1u << regions[i].partial;
    }
    return held;
}

static float mixed(uint64_t seed, int a, int b, int c) {
    Random random = {seed + (uint64_t)a * 0x9e3779b9u + (uint64_t)b * 0x85ebca6bu +
                     (uint64_t)c * 0xc2b2ae35u};
    random_real(&random);
    return random_real(&random);
}

float element_value(uint64_t seed, int element) { return mixed(seed, -1, -1, element); }

float contribution_value(const Held *held, uint64_t seed, int replica, int id, int element) {
    uint32_t ids = held->ids[replica][element];
    float value = element_value(seed, element);
    int first = __builtin_ctz(ids);
    if (held->partial == STATE_MAX)
        return id == first ? value : value - 1 - mixed(seed, replica, id, element);
    if (id != first) return mixed(seed, replica, id, element);
    for (int other = first + 1; other < 32; other++)
        if (ids >> other & 1) value -= mixed(seed, replica, other, element);
    return value;
}

/* Whether a device holds the whole value of an element: its replica has one contribution. */
static bool holds_whole(const Held *held, int i, int element) {
    return held->offset[i][element] >= 0 &&
           __builtin_popcount(held->ids[held->regions[i].replica][element]) == 1;
}

static int find_device(const Held *held, int device) {
    for (int i = 0; i < held->device_count; i++)
        if (held->devices[i] == device) return i;
    return -1;
}

static bool device_holds(const Held *held, int device, int element) {
    int i = find_device(held, device);
    return i >= 0 && held->offset[i][element] >= 0;
}

static int wanters(const Held *to, int element) {
    int count = 0;
    for (int i = 0; i < to->device_count; i++) count += to->offset[i][element] >= 0;
    return count;
}

static bool any_whole(const Held *from, int element) {
    for (int i = 0; i < from->device_count; i++)
        if (holds_whole(from, i, element)) return true;
    return false;
}

/* The target is partial: one contribution of each replica keeps the value. */
static int partial_bound(const Held *from, const Held *to, int element) {
    int total = 0;
    for (int r = 0; r < to->replica_count; r++) {
        int best = 0;
        for (int id = 0; id < 32; id++) {
            int missing = 0;
            for (int i = 0; i < to->device_count; i++)
                missing += to->regions[i].replica == r && to->regions[i].partial == id &&
                           to->offset[i][element] >= 0 &&
                           !device_holds(from, to->devices[i], element);
            if (to->ids[r][element] >> id & 1 && (!best || missing + 1 < best)) best = missing + 1;
        }
        total += best ? best - 1 : 0;
    }
    return total;
}

/* One replica is reduced at one place, and the value handed out. */
static int reduction_bound(const Held *from, const Held *to, int element) {
    int best = -1, wanted = wanters(to, element);
    for (int r = 0; r < from->replica_count && wanted; r++) {
        if (!from->ids[r][element]) continue;
        bool held = false;
        for (int i = 0; i < from->device_count; i++)
            held = held || (from->regions[i].replica == r && from->offset[i][element] >= 0 &&
                            device_holds(to, from->devices[i], element));
        int cost = __builtin_popcount(from->ids[r][element]) - held + wanted - 1;
        best = best < 0 || cost < best ? cost : best;
    }
    return best < 0 ? 0 : best;
}

long lower_bound(const Held *from, const Held *to) {
    long total = 0;
    for (int e = 0; e < from->volume; e++) {
        if (to->partial != STATE_DUP) total += partial_bound(from, to, e);
        else if (!any_whole(from, e)) total += reduction_bound(from, to, e);
        else
            for (int i = 0; i < to->device_count; i++) {
                int k = find_device(from, to->devices[i]);
                total += to->offset[i][e] >= 0 && (k < 0 || !holds_whole(from, k, e));
            }
    }
    return total;
}

long textbook_slack(const Held *from, const Held *to) {
    long total = 0;
    for (int e = 0; e < from->volume && from->partial != STATE_DUP && to->partial == STATE_DUP;
         e++) {
        long most = 0;
        for (int r = 0; r < from->replica_count; r++) {
            int contributions = __builtin_popcount(from->ids[r][e]), fewest = wanters(to, e);
            for (int id = 0; id < 32; id++) {
                int holders = 0;
                for (int i = 0; i < from->device_count; i++)
                    holders += from->regions[i].replica == r && from->regions[i].partial == id &&
                               from->offset[i][e] >= 0;
                fewest = holders && holders < fewest ? holders : fewest;
            }
            long extra =
                contributions > 1 && fewest > 1 ? (long)(fewest - 1) * (contributions - 2) : 0;
            most = extra > most ? extra : most;
        }
        total += most;
    }
    return total;
}
