/* Finds groups of devices that may form a collective, by connected components (union-find). */
#include "reshard/devices.h"

#include "support/intern.h"
#include "support/array.h"

#include <stdlib.h>
#include <string.h>

Devices devices_joined(Arena *arena, const Devices *a, const Devices *b) {
    int count = a->count + b->count;
    Devices joined = {arena_array(arena, int, count), count, count};
    memcpy(joined.at, a->at, sizeof *a->at * (size_t)a->count);
    if (b->count) memcpy(joined.at + a->count, b->at, sizeof *b->at * (size_t)b->count);
    return joined;
}

Devices devices_without(Arena *arena, const Devices *devices, int device) {
    Devices others = {0};
    for (int i = 0; i < devices->count; i++)
        if (devices->at[i] != device) array_push(arena, &others, devices->at[i]);
    return others;
}

void sort_devices(int *devices, int count) {
    enum { FEW = 4 }; // moves per device; with more moves, insertion sort is slower than qsort
    int left = FEW * count;
    for (int i = 1; i < count && left >= 0; i++) {
        int device = devices[i], k = i;
        for (; k > 0 && devices[k - 1] > device; k--, left--) devices[k] = devices[k - 1];
        devices[k] = device;
    }
    if (left < 0) qsort(devices, (size_t)count, sizeof *devices, compare_ints);
}

/* ---- positions of devices in a list ---- */

Index *index_create(PlanBuilder *planner) {
    Index *index = arena_new(planner->arena, Index);
    int count = planner->plan->device_count;
    *index = (Index){planner->plan, arena_array(planner->arena, int, count),
                     arena_array(planner->arena, int, count), 1};
    return index;
}

void index_clear(Index *index) { index->list++; }

void index_set(Index *index, int device, int place) {
    int slot = plan_slot(index->plan, device);
    index->stamp[slot] = index->list;
    index->place[slot] = place;
}

void index_devices(Index *index, const Devices *devices) {
    index_clear(index);
    for (int i = 0; i < devices->count; i++) index_set(index, devices->at[i], i);
}

int index_find(const Index *index, int device) {
    int slot = plan_slot(index->plan, device);
    return slot >= 0 && index->stamp[slot] == index->list ? index->place[slot] : -1;
}

/* ---- components of connected sets ---- */

int *sort_by_key(Arena *arena, const int *key, int count, int keys, int *begin) {
    int *order = arena_array(arena, int, count), *next = arena_array(arena, int, keys + 1);
    for (int i = 0; i < count; i++) begin[key[i] + 1]++;
    for (int k = 0; k < keys; k++) next[k + 1] = begin[k + 1] += begin[k];
    for (int i = 0; i < count; i++) order[next[key[i]]++] = i;
    return order;
}

/* Returns the representative of the slots that are joined with slot i (union-find). */
static int representative(int *joined, int i) {
    while (joined[i] != i) i = joined[i] = joined[joined[i]];
    return i;
}

/* Joins the devices of each set. `last` has, by slot, the last joined list that begins with the
 * device; a set that shares this list is skipped. */
static void join_sets(const Plan *plan, const Devices *sets, int count, int *joined,
                      const Devices **last) {
    for (int s = 0; s < count; s++) {
        int first = plan_slot(plan, sets[s].at[0]);
        const Devices *before = last[first];
        if (before && before->at == sets[s].at && before->count == sets[s].count) continue;
        last[first] = &sets[s];
        for (int k = 1; k < sets[s].count; k++) {
            int a = representative(joined, first),
                b = representative(joined, plan_slot(plan, sets[s].at[k]));
            joined[a > b ? a : b] = a > b ? b : a;
        }
    }
}

/* The state of numbering components; `joined`, `number` and `last` are scratch, by slot. */
typedef struct Joining {
    int *joined, *number;
    const Devices **last;
    int *size; // by component: number of its devices
    int count; // number of components so far
} Joining;

/* Writes the component of each set of one kind to `component`; counts its devices in `size`. */
static void number_sets(const Plan *plan, const Devices *sets, int set_count, Joining *joining,
                        int *component) {
    int *joined = joining->joined, *number = joining->number;
    for (int i = 0; i < plan->device_count; i++) {
        joined[i] = i;
        number[i] = 0;
        joining->last[i] = NULL;
    }
    join_sets(plan, sets, set_count, joined, joining->last);
    for (int s = 0; s < set_count; s++) {
        int first = representative(joined, plan_slot(plan, sets[s].at[0]));
        if (!number[first]) number[first] = ++joining->count;
        component[s] = number[first] - 1;
    }
    for (int i = 0; i < plan->device_count; i++)
        if (number[representative(joined, i)])
            joining->size[number[representative(joined, i)] - 1]++;
}

static bool all_full(const Devices *sets, int set_count, const int *component, const int *size) {
    for (int s = 0; s < set_count; s++)
        if (sets[s].count != size[component[s]]) return false;
    return true;
}

/* Writes the number of each set's class, the equal sets of a component, to class_of. Skips the
 * components that `small` marks (they have a set of few devices). Returns the number of classes. */
static int number_classes(const Devices *sets, int set_count, const int *component,
                          const bool *small, int *class_of) {
    Arena *scratch = arena_create();
    Intern *known = intern_create(scratch);
    int classes = 0;
    for (int s = 0; s < set_count; s++) {
        int count = sets[s].count;
        if (small[component[s]]) continue;
        int *key = arena_array(scratch, int, count + 1);
        memcpy(key, sets[s].at, sizeof *key * (size_t)count);
        sort_devices(key, count);
        key[count] = component[s];
        intptr_t *number = intern_slot(known, key, sizeof *key * (size_t)(count + 1));
        if (!*number) *number = ++classes;
        class_of[s] = (int)*number - 1;
    }
    arena_destroy(scratch);
    return classes;
}

/* Marks components with a set of < COLLECTIVE_MANY devices as small. Returns how many are not. */
static int find_large(const Devices *sets, int set_count, const int *component, int count,
                      bool *small) {
    int large = count;
    for (int s = 0; s < set_count; s++) {
        large -= sets[s].count < COLLECTIVE_MANY && !small[component[s]];
        small[component[s]] = small[component[s]] || sets[s].count < COLLECTIVE_MANY;
    }
    return large;
}

/* Splits components into their classes if these have many devices and, on average, many sets; each
 * class becomes a component. Such classes occur if one layout cuts fine slices, and each device of
 * the other layout holds several of these slices. */
static void divide_components(PlanBuilder *planner, const Devices *sets, int set_count,
                              int *component, Joining *joining) {
    Arena *arena = planner->arena;
    int *count = &joining->count;
    bool *small = arena_array(arena, bool, *count);
    int large = find_large(sets, set_count, component, *count, small);
    if (!large || all_full(sets, set_count, component, joining->size)) return;
    int *class_of = arena_array(arena, int, set_count),
        classes = number_classes(sets, set_count, component, small, class_of), numbered = 0;
    int *number = arena_array(arena, int, classes + *count),
        *members = arena_array(arena, int, *count);
    bool *seen = arena_array(arena, bool, classes);
    if (classes == large) return;
    for (int s = 0; s < set_count; s++) {
        if (small[component[s]]) continue;
        members[component[s]] += seen[class_of[s]] ? 1 : 1 - COLLECTIVE_MANY;
        seen[class_of[s]] = true;
    }
    for (int s = 0; s < set_count; s++) {
        int c = component[s],
            *own = &number[small[c] || members[c] < 0 ? classes + c : class_of[s]];
        *own = *own ? *own : ++numbered;
        component[s] = *own - 1;
    }
    *count = numbered;
}

Components connect_sets(PlanBuilder *planner, const Devices *sets, const int *kinds, int count) {
    Arena *arena = planner->arena;
    int devices = planner->plan->device_count, *component = arena_array(arena, int, count);
    Joining joining = {arena_array(arena, int, devices), arena_array(arena, int, devices),
                       arena_array(arena, const Devices *, devices), arena_array(arena, int, count),
                       0};
    Components components = {.devices = sets, .of = component};
    for (int s = 0, end; s < count; s = end) {
        for (end = s + 1; end < count && (!kinds || kinds[end] == kinds[s]);) end++;
        number_sets(planner->plan, sets + s, end - s, &joining, component + s);
    }
    divide_components(planner, sets, count, component, &joining);
    components.count = joining.count;
    int *begin = arena_array(arena, int, components.count + 1);
    components.sets = sort_by_key(arena, component, count, components.count, begin);
    components.begin = begin;
    return components;
}

bool may_collect(const PlanBuilder *planner, const Devices *devices) {
    for (int i = 0; i < devices->count; i++)
        if (planner->avoid[plan_slot(planner->plan, devices->at[i])]) return false;
    return !planner->messages;
}

static bool all_indexed(const Index *places, const Devices *set) {
    for (int k = 0; k < set->count; k++)
        if (index_find(places, set->at[k]) < 0) return false;
    return true;
}

static void add_member(const PlanBuilder *planner, Index *places, Devices *members, int device) {
    if (index_find(places, device) >= 0) return;
    index_set(places, device, members->count);
    array_push(planner->arena, members, device);
}

ClosedGroup closed_group(const PlanBuilder *planner, const Components *components, int component,
                         const int *leaders, Index *places) {
    const Devices *sets = components->devices;
    const int *order = components->sets + components->begin[component];
    int count = components->begin[component + 1] - components->begin[component];
    const Devices *first = &sets[order[0]];
    Devices members = {0};
    index_clear(places);
    for (int i = 0; i < count; i++) add_member(planner, places, &members, leaders[order[i]]);
    int leading = members.count;
    for (int k = 0; k < first->count; k++) add_member(planner, places, &members, first->at[k]);
    bool same = members.count == first->count;
    for (int i = 1; i < count && same; i++) {
        const Devices *set = &sets[order[i]];
        same = set->at == first->at || (set->count == first->count && all_indexed(places, set));
    }
    if (!same || !may_collect(planner, &members)) return (ClosedGroup){0};
    qsort(members.at + leading, (size_t)(members.count - leading), sizeof *members.at,
          compare_ints);
    return (ClosedGroup){members, leading};
}
