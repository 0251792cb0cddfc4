/* Lists of devices: index of positions, and groups of devices that belong together (devices_find is
 * in plan.h). */
#ifndef RESHARD_DEVICES_H
#define RESHARD_DEVICES_H

#include "reshard/plan_builder.h"

/* Returns the concatenation of two lists. */
Devices devices_joined(Arena *arena, const Devices *a, const Devices *b);

/* Returns a list without one device. */
Devices devices_without(Arena *arena, const Devices *devices, int device);

/* Sorts device numbers; fast where few are out of place. */
void sort_devices(int *devices, int count);

/* ---- places ---- */

/* An index from devices to their positions in a list. Clearing it takes constant time. */
typedef struct Index {
    const Plan *plan;
    int *stamp, *place; // by slot; a position is valid when its stamp equals `list`
    int list;
} Index;

Index *index_create(PlanBuilder *planner);

/* Forgets the devices of the last list. */
void index_clear(Index *index);

/* Sets the position of a device. */
void index_set(Index *index, int device, int place);

/* Replaces the indexed list. */
void index_devices(Index *index, const Devices *devices);

/* Returns a device's position; -1 when it is not in the list. */
int index_find(const Index *index, int device);

/* ---- groups ---- */

/* Returns whether a collective may have exactly these devices. */
bool may_collect(const PlanBuilder *planner, const Devices *devices);

/* A component with at least so many devices and sets uses collectives even when devices then act in
 * several of them, since the number of messages would grow with the pairs of devices. */
enum { COLLECTIVE_MANY = 4 };

/* The components of sets of devices: two sets belong together when they share devices, directly or
 * through other sets. In large components with few different sets, only equal sets belong together.
 */
typedef struct Components {
    int count;
    const Devices *devices; // by set
    const int *of;          // by set: its component
    const int *begin; // by component: index of its first set in `sets`; one more entry for the end
    const int *sets;  // numbers of sets by component, each in their order
} Components;

/* Returns the components of sets. Sets of different kinds are not connected; equal kinds must be
 * adjacent. NULL: all sets are of one kind. */
Components connect_sets(PlanBuilder *planner, const Devices *sets, const int *kinds, int count);

/* Returns the numbers 0 .. count - 1 sorted stably by their keys, which are below `keys`. `begin`
 * has keys + 1 entries, zero at first, and gets where each key begins. */
int *sort_by_key(Arena *arena, const int *key, int count, int keys, int *begin);

/* A group of devices, the leaders first. */
typedef struct ClosedGroup {
    Devices members;
    int leading; // number of leaders
} ClosedGroup;

/* Returns the devices of a component whose sets are all equal and may be a collective, else none:
 * first the leaders of the sets, each once, then the others, ascending. Sets the index `places`. */
ClosedGroup closed_group(const PlanBuilder *planner, const Components *components, int component,
                         const int *leaders, Index *places);

#endif
