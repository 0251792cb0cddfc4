/* Plans: what the planner makes of a conversion.
 *
 * A plan is a list of steps in one order for all devices. A step moves segments, parts of bundles
 * (intersection/intersection.h), by one collective in a group or by a batch of messages. It names
 * devices and segments only; plan_device lowers it, for one device, to the tables of
 * <hetu/reshard.h>.
 *
 * Tensors of one shape and type that go between the same layouts form a bucket: they are planned as
 * one tensor with another dimension in front, which no layout cuts. So the work of planning grows
 * with the number of different conversions. A bundle of a bucket has the elements of its first
 * tensor, then those of the second, and so on.
 */
#ifndef RESHARD_PLAN_H
#define RESHARD_PLAN_H

#include "hetu/reshard.h"
#include "reshard/intersection/intersection.h"
#include "reshard/reshard.h"

/* Tensors that are converted alike. */
typedef struct Bucket {
    ht_dtype dtype;
    int element; // bytes
    ht_reduction reduction;
    const Overlap *overlap; // of one tensor
    int tensor_count;
    const int *tensors; // their numbers among the conversions, ascending
    bool in_place;      // the tensors may be converted in their own storage
    bool nothing;       // every device already holds what it shall hold, as it shall
} Bucket;

/* What is sent: what the sender holds of the source; the reduction of all contributions on its
 * host, or another one that is not complete, which lie in scratch; or the value as the target
 * stores it. */
typedef enum Origin { ORIGIN_FROM, ORIGIN_LOCAL, ORIGIN_PARTIAL, ORIGIN_TO } Origin;

/* The part [lo, hi) of a task's bundle. */
typedef struct Segment {
    int task;
    Origin origin;
    int source; // which contribution, or the first of several
    int64_t lo, hi;
} Segment;

typedef Array(Segment) Segments;
typedef Array(int) Devices;

/* One reduction or copy: the contributions to a bundle that make one value, and the devices that
 * want it, whether they hold it already or receive it. */
typedef struct Task {
    int bucket, bundle;
    int64_t lo, volume; // the part [lo, lo + volume) of the bundle in all tensors of the bucket
    int source_count;   // contributions: 0 for the identity, 1 for a copy
    Devices *sources;   // by contribution, its holders in the layout's order
    Devices targets;    // in the layout's order
    Origin origin;      // of the contributions: ORIGIN_FROM or ORIGIN_LOCAL
    bool local;         // makes a contribution to another task, which has the origin ORIGIN_LOCAL
    int whole;          // local: that task
} Task;

typedef Array(Task) TaskList;

typedef struct Message {
    int sender, receiver;
    int64_t bytes;
    Segments segments;
} Message;

/* A part of a value that a device reduces from what it holds and what it receives. */
typedef struct Reducing {
    int device;
    Segment segment;
    bool partial; // the result goes to scratch and stands for some of the contributions only
} Reducing;

typedef Array(Message) Messages;
typedef Array(Reducing) Reducings;

typedef struct Step {
    ht_verb verb; // HT_ALL_REDUCE, HT_REDUCE_SCATTER, HT_ALL_GATHER, HT_ALL_TO_ALL, HT_BROADCAST,
                  // HT_REDUCE or HT_EXCHANGE
    int stage;    // steps of different stages depend on each other
    ht_dtype
        dtype; // of what it moves; exchanges of several types: the one with the smallest elements
    Devices group;     // in the order of their parts, the root first; empty for an exchange
    int group_index;   // in plan->groups
    Segments *parts;   // by position in the group: what the device contributes to a gather or keeps
                       // of a reduction; HT_ALL_REDUCE: parts[0]
    Messages messages; // HT_ALL_TO_ALL, HT_EXCHANGE: of one sender and receiver there is one
    bool combine;      // what the messages carry are contributions to `reductions`, else values
    Reducings reductions;
    int together;   // the first of the steps that it takes place with
    double seconds; // that these take, by what was measured too: of the first one; else 0
                    // (price_steps)
} Step;

typedef Array(Step) Steps;

/* What lowering (lower/) has made so far; each member is made when it is first asked for. */
typedef struct PlanCache {
    const ht_reshard_device **lowered; // by slot: the device's tables
    struct DeviceSteps *device_steps;  // by slot: where the device acts (lower/lower.h)
    struct Intern *step_parts; // by step: the parts of all devices as one list, and its moves
    struct Intern *blocks;     // lists of blocks by the segments that they hold
    struct Intern *shared;     // moves, blocks and steps that several devices have alike
} PlanCache;

struct Plan {
    Arena *arena;
    const Cluster *cluster;
    int tensor_count, device_count;
    const int *devices; // of all layouts, ascending; a device's index is its slot
    int span;           // of the devices' numbers
    const int *slots;   // by device from the first on; -1: it is none of them
    bool nothing;       // every device already holds what it shall hold, as it shall
    bool in_place;
    Array(Bucket) buckets;
    TaskList tasks; // bucket by bucket
    Steps steps;
    int64_t *received, *sent; // bytes, by slot
    PlanCache *cache;
    Array(ht_group) groups;
    const char *name;
    double seconds;
};

/* Returns an empty cache for a plan of so many devices. */
PlanCache *plan_cache_create(Arena *arena, int device_count);

/* Returns a device's slot, and its position in a list; -1 when it is not there. */
static inline int plan_slot(const Plan *plan, int device) {
    int offset = plan->span ? device - plan->devices[0] : -1;
    return offset >= 0 && offset < plan->span ? plan->slots[offset] : -1;
}
int devices_find(const Devices *devices, int device);

/* Returns how many lists of parts a step has, and whether it is a collective that reduces. */
int step_part_count(const Step *step);
bool step_reduces(const Step *step);

/* Returns the bucket that a task belongs to, the bytes of one of its elements, and all that it
 * makes: as a segment of what the target stores, or of its first contribution. */
const Bucket *task_bucket(const Plan *plan, int task);
int task_element(const Plan *plan, int task);
Segment task_segment(const Plan *plan, int task);

/* Returns the bytes of a segment, and of all segments of a list. */
int64_t segment_bytes(const Plan *plan, const Segment *segment);
int64_t segments_bytes(const Plan *plan, const Segments *segments);

/* Returns the bytes of the smallest elements among `count` lists of segments; 8 where all are
 * empty. */
int segments_element(const Plan *plan, const Segments *lists, int count);

/* Returns the bytes of the tensors that a step is about: of a collective's parts, and of its
 * messages. */
double step_bytes(const Plan *plan, const Step *step);

/* Returns the bytes of the tensors that a device touches: all that it then holds, and what it
 * sends or keeps of what it held. */
double plan_touched_bytes(const Plan *plan, int device);

/* Returns what `device` does; a device outside of the plan has no steps. Groups are numbered as
 * in plan->groups. */
const ht_reshard_device *plan_device(const Plan *plan, int device);

/* Returns the whole plan in the form that the run-time library executes. */
const ht_reshard *plan_lowered(Arena *arena, const Plan *plan, const char *name);

#endif
