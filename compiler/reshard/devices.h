/* Lists of devices: places in them, and which of them belong together. (plan.h has
 * devices_find.) */
#ifndef RESHARD_DEVICES_H
#define RESHARD_DEVICES_H

#include "reshard/plan_builder.h"

/* Returns the devices of two lists, one after the other. */
Devices devices_joined(Arena *arena, const Devices *a, const Devices *b);

/* Returns a list without one device. */
Devices devices_without(Arena *arena, const Devices *devices, int device);

/* Puts device numbers in ascending order; in a time that grows with their count where few are out
 * of place. */
void sort_devices(int *devices, int count);

/* ---- places ---- */

/* The places of devices in a list; a new list takes no time to begin. */
typedef struct Index {
    const Plan *plan;
    int *stamp, *place; // by slot; a place counts when its stamp is that of the list
    int list;
} Index;

Index *index_create(PlanBuilder *planner);

/* Forgets the devices of the last list. */
void index_clear(Index *index);

/* Makes `place` the place of a device. */
void index_set(Index *index, int device, int place);

/* The list becomes that of these devices. */
void index_devices(Index *index, const Devices *devices);

/* Returns a device's place; -1 when it is not in the list. */
int index_find(const Index *index, int device);

/* ---- groups ---- */

/* Returns whether these devices may act together in a collective. */
bool may_collect(const PlanBuilder *planner, const Devices *devices);

/* From so many devices on, and so many sets of them, a collective is worth that some act in
 * several, one after another: messages would be as many as the pairs of its devices. */
enum { COLLECTIVE_MANY = 4 };

/* Sets of devices by components: two sets are in one when they share devices, directly or through
 * others; where these are many and fall into few different ones, when they are the same. */
typedef struct Components {
    int count;
    const int *of;    // by set: its component
    const int *begin; // by component: where its sets begin in `sets`; one more, the end
    const int *sets;  // numbers of sets, of each component in their order
} Components;

/* Sets of different `kinds` are not connected; equal kinds stand together. NULL: all are of one
 * kind. */
Components connect_sets(PlanBuilder *planner, const Devices *sets, const int *kinds, int count);

/* Returns the numbers 0 .. count - 1 by their keys, which are below `keys`; those of one key
 * stay in order. `begin`, of keys + 1 entries that are zero, gets where each key's begin. */
int *sort_by_key(Arena *arena, const int *key, int count, int keys, int *begin);

/* Returns the devices of a component when all its sets have the same ones and these may act
 * together in a collective, else none: first the leaders of the sets, each once, then the
 * others, ascending. Their places go to the index, the number of leaders to *leading. */
Devices closed_group(const PlanBuilder *planner, const Components *components, int component,
                     const Devices *sets, const int *leaders, Index *places, int *leading);

#endif
