/* Functions that read a plan. */
#include "reshard/plan.h"

#include "support/intern.h"

int devices_find(const Devices *devices, int device) {
    for (int i = 0; i < devices->count; i++)
        if (devices->at[i] == device) return i;
    return -1;
}

int ht_dtype_size(ht_dtype dtype) {
    static const int sizes[] = {
        [HT_F32] = 4, [HT_BF16] = 2, [HT_F64] = 8, [HT_I32] = 4, [HT_I64] = 8};
    return sizes[dtype];
}

const Bucket *task_bucket(const Plan *plan, int task) {
    return &plan->buckets.at[plan->tasks.at[task].bucket];
}

int task_element(const Plan *plan, int task) { return task_bucket(plan, task)->element; }

Segment task_segment(const Plan *plan, int task) {
    const Task *all = &plan->tasks.at[task];
    return (Segment){
        .task = task, .origin = all->origin, .lo = all->lo, .hi = all->lo + all->volume};
}

int64_t segment_bytes(const Plan *plan, const Segment *segment) {
    return (segment->hi - segment->lo) * task_element(plan, segment->task);
}

int64_t segments_bytes(const Plan *plan, const Segments *segments) {
    int64_t bytes = 0;
    for (int i = 0; i < segments->count; i++) bytes += segment_bytes(plan, &segments->at[i]);
    return bytes;
}

int segments_element(const Plan *plan, const Segments *lists, int count) {
    int least = 8;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < lists[i].count; k++) {
            int element = task_element(plan, lists[i].at[k].task);
            least = element < least ? element : least;
        }
    return least;
}

int step_part_count(const Step *step) {
    return !step->parts ? 0 : step->verb == HT_ALL_REDUCE ? 1 : step->group.count;
}

bool step_reduces(const Step *step) {
    return step->verb == HT_ALL_REDUCE || step->verb == HT_REDUCE_SCATTER ||
           step->verb == HT_REDUCE;
}

PlanCache *plan_cache_create(Arena *arena, int device_count) {
    PlanCache *cache = arena_new(arena, PlanCache);
    cache->lowered = arena_array(arena, const ht_reshard_device *, device_count);
    cache->step_parts = intern_create(arena);
    cache->blocks = intern_create(arena);
    cache->shared = intern_create(arena);
    return cache;
}

bool plan_in_place(const Plan *plan) { return plan->in_place; }
bool plan_nothing(const Plan *plan) { return plan->nothing; }

const char *plan_name(const Plan *plan) { return plan->name; }

double plan_seconds(const Plan *plan) { return plan->seconds; }

int64_t plan_bytes(const Plan *plan) {
    int64_t total = 0;
    for (int i = 0; i < plan->device_count; i++)
        if (__builtin_add_overflow(total, plan->received[i], &total)) return INT64_MAX;
    return total;
}

/* Returns a device's entry of a list by slot; 0 if the device is not in the plan. */
static int64_t of_device(const Plan *plan, const int64_t *bytes, int device) {
    int slot = plan_slot(plan, device);
    return slot < 0 ? 0 : bytes[slot];
}

int64_t plan_bytes_received(const Plan *plan, int device) {
    return of_device(plan, plan->received, device);
}
int64_t plan_bytes_sent(const Plan *plan, int device) {
    return of_device(plan, plan->sent, device);
}

static double held_bytes(const Plan *plan, Side side, int device) {
    double bytes = 0;
    for (int b = 0; b < plan->buckets.count; b++) {
        const Bucket *bucket = &plan->buckets.at[b];
        const Holdings *holdings = &bucket->overlap->side[side];
        int number = holdings_find(holdings, device);
        bytes += number < 0 ? 0
                            : (double)holdings->list.at[number].region->volume * bucket->element *
                                  bucket->tensor_count;
    }
    return bytes;
}

double plan_touched_bytes(const Plan *plan, int device) {
    double before = held_bytes(plan, SIDE_FROM, device), after = held_bytes(plan, SIDE_TO, device);
    double used = after + (double)plan_bytes_sent(plan, device);
    return after + (used < before ? used : before);
}
