/* Lists of devices: positions in a list, components of sets. See also devices_find (plan.h). */
#pragma once

#include "reshard/plan_builder.h"

/* Returns the concatenation of two lists. */
Devices devices_joined(Arena *arena, const Devices *a, const Devices *b);

/* Returns a copy of a list without one device. */
Devices devices_without(Arena *arena, const Devices *devices, int device);

/* Sorts device numbers, ascending; fast if few are out of place. */
void sort_devices(int *devices, int count);

/* ---- positions of devices in a list ---- */

/* An index from devices to their positions in a list. Clearing it takes constant time. */
typedef struct Index {
    const Plan *plan;
    int *stamp, *place; // by slot; a position is valid when its stamp equals `list`
    int list;
} Index;

Index *index_create(PlanBuilder *planner);

/* Removes all devices from the index. */
void index_clear(Index *index);

/* Sets the position of a device. */
void index_set(Index *index, int device, int place);

/* Clears the index, and sets the positions of a list's devices. */
void index_devices(Index *index, const Devices *devices);

/* Returns a device's position; -1 when it is not in the list. */
int index_find(const Index *index, int device);

/* ---- components of connected sets ---- */

/* Returns whether a collective may have exactly these devices. */
bool may_collect(const PlanBuilder *planner, const Devices *devices);

/* Equal sets of a component (Components) are split off for a collective of their own if each set of
 * the component has at least this many devices, and on average at least this many sets are equal. A
 * device may then act in several collectives. */
enum { COLLECTIVE_MANY = 4 };

/* The components of sets of devices: two sets are in one if they share devices, directly or through
 * other sets. A large component of few different sets is split into groups of equal sets. */
typedef struct Components {
    int count;
    const Devices *devices; // by set: its devices
    const int *of;          // by set: its component
    const int *begin; // by component: index of its first set in `sets`; one more entry for the end
    const int *sets;  // numbers of the sets, by component, ascending within a component
} Components;

/* Returns the components of sets. Sets of different kinds are not connected; equal kinds must be
 * adjacent. `kinds` NULL: all sets are of one kind. */
Components connect_sets(PlanBuilder *planner, const Devices *sets, const int *kinds, int count);

/* Returns the numbers [0, count) sorted stably by their keys, which are in [0, keys). Writes to
 * `begin`, keys + 1 entries that the caller has zeroed, the index where each key begins. */
int *sort_by_key(Arena *arena, const int *key, int count, int keys, int *begin);

/* A group of devices, the leaders first. */
typedef struct ClosedGroup {
    Devices members;
    int leading; // number of leaders
} ClosedGroup;

/* Returns the devices of a component if its sets are equal and may form a collective, else none.
 * The sets' leaders come first, each once, then the others, ascending. `places` indexes leaders. */
ClosedGroup closed_group(const PlanBuilder *planner, const Components *components, int component,
                         const int *leaders, Index *places);
