/* Groups devices that hold replicas of the same elements. */
#include "layout/holding.h"

#include "support/intern.h"

#include <stdlib.h>

/* Returns, by index of `devices`, the smallest device with the same replica; with `partial`, the
 * smallest one with the same replica and contribution. */
static const int *smallest_devices(Arena *arena, const Region *regions, const int *devices,
                                   int count, bool partial) {
    int *smallest = arena_array(arena, int, count), **names = arena_array(arena, int *, count);
    Intern *known = intern_create(arena);
    for (int i = 0; i < count; i++) {
        int key[] = {regions[i].replica, partial ? regions[i].partial : 0},
            **name = intern_slot(known, key, sizeof key);
        if (!*name) *(*name = &smallest[i]) = devices[i];
        **name = devices[i] < **name ? devices[i] : **name;
        names[i] = *name;
    }
    for (int i = 0; i < count; i++) smallest[i] = *names[i];
    return smallest;
}

/* Writes to `key` what is equal for devices of the same holding. Returns the size in bytes. */
static size_t holding_key(const Holding *holding, int64_t *key) {
    size_t n = 0;
    key[n++] = holding->replica;
    key[n++] = holding->partial;
    for (int b = 0; b < holding->region->box_count; b++)
        for (int d = 0; d < holding->region->rank; d++) {
            key[n++] = holding->region->boxes[b].dim[d].lo;
            key[n++] = holding->region->boxes[b].dim[d].hi;
        }
    return n * sizeof *key;
}

static int64_t *longest_key(Arena *arena, const Region *regions, int count) {
    int most = 0;
    for (int i = 0; i < count; i++)
        most = regions[i].box_count > most ? regions[i].box_count : most;
    return arena_array(arena, int64_t, 2 + 2 * most * LAYOUT_MAX_RANK);
}

static int compare_members(const void *a, const void *b) {
    const Member *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

static bool is_ascending(const int *devices, int count) {
    for (int i = 1; i < count; i++)
        if (devices[i] <= devices[i - 1]) return false;
    return true;
}

Holdings holdings_of(Arena *arena, const Layout *layout, Shape shape) {
    Holdings holdings = {.partial = layout_partial(layout)};
    int count;
    const int *devices = layout_devices(arena, layout, &count), *replica = NULL, *partial = NULL;
    const Region *regions = layout_regions(arena, layout, shape, &count);
    if (holdings.partial != STATE_DUP) {
        replica = smallest_devices(arena, regions, devices, count, false);
        partial = smallest_devices(arena, regions, devices, count, true);
    }
    holdings.device_count = count;
    holdings.members = arena_array(arena, Member, count);
    Intern *known = intern_create(arena);
    int64_t *key = longest_key(arena, regions, count);
    for (int i = 0; i < count; i++) {
        Holding holding = {.replica = replica ? replica[i] : 0,
                           .partial = partial ? partial[i] : 0,
                           .layout = layout,
                           .region = &regions[i]};
        intptr_t *number = intern_slot(known, key, holding_key(&holding, key));
        if (!*number) {
            array_push(arena, &holdings.list, holding);
            *number = holdings.list.count;
        }
        holdings.members[i] = (Member){devices[i], (int)*number - 1};
        array_push(arena, &holdings.list.at[*number - 1].devices, devices[i]);
    }
    if (!is_ascending(devices, count))
        qsort(holdings.members, (size_t)count, sizeof *holdings.members, compare_members);
    return holdings;
}

int holdings_find(const Holdings *holdings, int device) {
    int low = 0, high = holdings->device_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (holdings->members[middle].device < device) low = middle + 1;
        else high = middle;
    }
    return low < holdings->device_count && holdings->members[low].device == device
               ? holdings->members[low].holding
               : -1;
}
