/* Plans: what the planner makes of a conversion.
 *
 * A plan is a list of steps in one order for all devices. A step moves segments, parts of bundles (layout/cells.h), by one collective in a group or by a batch of
 * messages. It names devices and segments only; plan_device lowers it, for one device, to the tables of <hetu/reshard.h>.
 */
#ifndef LAYOUT_PLAN_H
#define LAYOUT_PLAN_H

#include "hetu/reshard.h"
#include "layout/cells.h"
#include "layout/reshard.h"

/* What is sent: the sender's own piece, a reduction that is not complete and lies in scratch, or the value as the target stores it. */
typedef enum Origin { ORIGIN_FROM, ORIGIN_PARTIAL, ORIGIN_TO } Origin;

/* The part [lo, hi) of a task's bundle. */
typedef struct Segment {
    int task;
    Origin origin;
    int source; // which contribution, or the first of several
    int64_t lo, hi;
} Segment;

typedef Array(Segment) Segments;
typedef Array(int) Devices;

/* One reduction or copy: the contributions to a bundle that make one value, and the devices that want it. */
typedef struct Task {
    int bundle;
    int64_t volume;
    int source_count;    // contributions: 0 for the identity, 1 for a copy
    Devices *sources;    // by contribution, its holders in the layout's order
    Devices wanted;      // in the layout's order
} Task;

typedef struct Message {
    int sender, receiver;
    int64_t volume;
    Segments segments;
} Message;

/* A part of a value that a device reduces from what it holds and what it receives. */
typedef struct Reducing {
    int device;
    Segment segment;
    bool partial;        // the result goes to scratch and stands for some of the contributions only
} Reducing;

typedef Array(Message) Messages;
typedef Array(Reducing) Reducings;

typedef struct Step {
    ht_verb verb;        // HT_ALL_REDUCE, HT_REDUCE_SCATTER, HT_ALL_GATHER, HT_ALL_TO_ALL, HT_BROADCAST, HT_REDUCE or HT_EXCHANGE
    Devices group;       // in the order of their parts, the root first; empty for an exchange
    int group_index;     // in plan->groups
    Segments *parts;     // by position in the group: what the device contributes to a gather or keeps of a reduction; HT_ALL_REDUCE: parts[0]
    Messages messages;   // HT_ALL_TO_ALL, HT_EXCHANGE: of one sender and receiver there is one
    bool combine;        // what the messages carry are contributions to `reductions`, else values
    Reducings reductions;
} Step;

struct Plan {
    Arena *arena;
    Shape shape;
    int element;
    const Cluster *cluster;
    const Cells *cells;
    ht_reduction reduction;
    int device_count;
    const int *devices;  // of both layouts, ascending
    bool large;          // more elements than an int counts: collectives with counts and places are not used
    bool nothing;        // every device already holds what it shall hold, as it shall
    bool in_place;
    Array(Task) tasks;
    Array(Step) steps;
    int64_t *received;   // elements, by index in devices
    int64_t *sent;
    const ht_reshard_device **lowered; // by index in devices, made on demand
    Array(ht_group) groups;
    const char *name;
    double seconds;
};

/* What `device` does; a device outside of the plan has no steps. Groups are numbered as plan_groups lists them. */
const ht_reshard_device *plan_device(const Plan *plan, int device);

/* The groups of the plan's collectives. */
const ht_group *plan_groups(const Plan *plan, int *count);

/* The whole plan in the form that the run-time library executes. */
const ht_reshard *plan_lowered(Arena *arena, const Plan *plan, ht_dtype dtype, const char *name);

#endif
