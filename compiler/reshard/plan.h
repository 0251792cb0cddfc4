/* A plan: the steps by which tensors are converted between layouts.
 *
 * order/order_steps.c makes the steps of a conversion; reshard.h has the map of this folder.
 * read_plan.c has the functions that read a plan.
 *
 * A plan is a list of steps in the same order for all devices. A step moves segments, parts of
 * bundles (intersection/intersection.h), by a collective in a group or by a batch of messages. A
 * plan names devices and segments only; plan_device lowers it, for one device, to the tables of
 * <hetu/reshard.h>.
 *
 *     [0-3]{sum:4} to [0-3]{0:4}     one step: HT_REDUCE_SCATTER, group 0-3, a segment for each
 *
 * Tensors of one shape and type between the same layouts form a bucket: they are planned as one
 * tensor with another, uncut dimension in front. So planning time grows with the number of
 * different conversions. A bundle of a bucket has the elements of its first tensor, then those of
 * its second tensor, and so on. */
#pragma once

#include "hetu/reshard.h"
#include "reshard/intersection/intersection.h"
#include "reshard/reshard.h"

/* A bucket: tensors with equal conversions. */
typedef struct Bucket {
    ht_dtype dtype;
    int element; // bytes of an element
    ht_reduction reduction;
    const Overlap *overlap; // overlap of the layouts of one tensor
    int tensor_count;
    const int *tensors; // indices of the conversions, ascending
    bool in_place;      // the tensors may be converted in their own storage
    bool nothing;       // every device already stores its target as the layout requires
} Bucket;

/* The origin of a segment's data on the sender: the sender's piece of the source (FROM) or of the
 * target (TO); or, in scratch, the reduction of all contributions on the sender's host (LOCAL) or
 * another partial reduction (PARTIAL). */
typedef enum Origin { ORIGIN_FROM, ORIGIN_LOCAL, ORIGIN_PARTIAL, ORIGIN_TO } Origin;

/* Elements [lo, hi) of a task's bundle. */
typedef struct Segment {
    int task;
    Origin origin;
    int source; // number of the contribution, or of the first one in a partial reduction
    int64_t lo, hi;
} Segment;

typedef Array(Segment) Segments;
typedef Array(int) Devices;

/* A task: one reduction or copy. A task has the contributions that make one value of a bundle, and
 * the target devices of the value, including those that already hold it. */
typedef struct Task {
    int bucket, bundle;
    int64_t lo, volume; // elements [lo, lo + volume) of the bundle, all tensors of the bucket
    int source_count;   // number of contributions: 1 for a copy, 0 for the reduction's identity
    Devices *sources;   // by contribution: its holders, in the layout's order
    Devices targets;    // devices that the target layout gives the value, in the layout's order
    Origin origin;      // origin of the contributions: ORIGIN_FROM or ORIGIN_LOCAL
    bool local;         // the result is a contribution (ORIGIN_LOCAL) of task `whole`
    int whole;          // if `local`: the task to which the result contributes
} Task;

typedef Array(Task) TaskList;

typedef struct Message {
    int sender, receiver;
    int64_t bytes;
    Segments segments;
} Message;

/* A segment that a device reduces from what it holds and what it receives. */
typedef struct Reducing {
    int device;
    Segment segment;
    bool partial; // the result is a partial reduction in scratch
} Reducing;

typedef Array(Message) Messages;
typedef Array(Reducing) Reducings;

typedef struct Step {
    ht_verb verb;      // a collective, or HT_EXCHANGE for messages
    int stage;         // steps of different stages depend on each other
    ht_dtype dtype;    // element type; if an exchange has several types, the smallest one
    Devices group;     // members in the order of their parts, the root first; empty for an exchange
    int group_index;   // index of plan->groups
    Segments *parts;   // by position in the group: the part that a device gives to a gather or
                       // keeps of a reduction; HT_ALL_REDUCE has only parts[0]
    Messages messages; // in HT_ALL_TO_ALL and HT_EXCHANGE, one for each sender and receiver
    bool combine;      // true: the messages carry contributions to `reductions`; false: values
    Reducings reductions;
    int together;   // index of the first step that runs simultaneously with this one
    double seconds; // in the first of simultaneous steps, the seconds of all of them; else 0
} Step;

typedef Array(Step) Steps;

/* The results of lowering (lower/) so far; each member is filled on demand. */
typedef struct PlanCache {
    const ht_reshard_device **lowered; // by slot: the device's tables
    struct DeviceSteps *device_steps;  // by slot: the steps of the device (lower/lower.h)
    struct Intern *step_parts; // by step: the parts of all devices as one list, and its moves
    struct Intern *blocks;     // by step and first block: the blocks of all parts
    struct Intern *shared;     // moves, blocks and steps that are equal on several devices
} PlanCache;

struct Plan {
    Arena *arena;
    const Cluster *cluster;
    int tensor_count, device_count;
    const int *devices; // devices of all layouts, ascending; the index of a device is its slot
    int span;           // last device number - first one + 1
    const int *slots;   // by device number minus the first one: its slot; -1: none
    bool nothing;       // every device already stores its target as the layout requires
    bool in_place;
    Array(Bucket) buckets;
    TaskList tasks; // ordered by bucket
    Steps steps;
    int64_t *received, *sent; // bytes, by slot
    PlanCache *cache;
    Array(ht_group) groups;
    const char *name;
    double seconds; // of the whole plan
};

/* Returns an empty cache for a plan of `device_count` devices. */
PlanCache *plan_cache_create(Arena *arena, int device_count);

/* Return a device's slot, and its position in a list; -1 if the device is absent. */
static inline int plan_slot(const Plan *plan, int device) {
    int offset = plan->span ? device - plan->devices[0] : -1;
    return offset >= 0 && offset < plan->span ? plan->slots[offset] : -1;
}
int devices_find(const Devices *devices, int device);

/* Return the number of lists in step->parts, and whether the step is a collective that reduces. */
int step_part_count(const Step *step);
bool step_reduces(const Step *step);

/* Return a task's bucket, the bytes of an element, and its range as a segment with its origin. */
const Bucket *task_bucket(const Plan *plan, int task);
int task_element(const Plan *plan, int task);
Segment task_segment(const Plan *plan, int task);

/* Return the bytes of a segment, and of all segments of a list. */
int64_t segment_bytes(const Plan *plan, const Segment *segment);
int64_t segments_bytes(const Plan *plan, const Segments *segments);

/* Returns the bytes of the smallest element type in `count` lists of segments; 8 if all empty. */
int segments_element(const Plan *plan, const Segments *lists, int count);

/* Returns the bytes of a collective's tensor, or of all messages of an exchange. */
double step_bytes(const Plan *plan, const Step *step);

/* Returns the bytes that a device touches: its target, and the part of its source that it uses. */
double plan_touched_bytes(const Plan *plan, int device);

/* Returns the tables of `device`, lowered on demand; a device outside of the plan has no steps.
 * Groups are numbered as in plan->groups. */
const ht_reshard_device *plan_device(const Plan *plan, int device);

/* Returns the whole plan in the form that the run-time library executes. */
const ht_reshard *plan_lowered(Arena *arena, const Plan *plan, const char *name);
