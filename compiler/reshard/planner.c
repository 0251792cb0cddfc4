/* The planner: bundles become tasks, tasks become steps, and the steps are counted, named and priced. */
#include "reshard/planner.h"

#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

static int compare_ints(const void *a, const void *b) { return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b); }

static void collect_devices(Planner *planner)
{
    Plan *plan = planner->plan;
    Devices all = {0};
    for (int s = 0; s < plan->buckets.count; s++)
        for (int side = 0; side < 2; side++) {
            const Holdings *own = &plan->buckets.at[s].overlap->side[side];
            for (int i = 0; i < own->device_count; i++)
                array_push(planner->arena, &all, own->devices[i]);
        }
    if (all.count)
        qsort(all.at, (size_t)all.count, sizeof *all.at, compare_ints);
    for (int i = 0; i < all.count; i++)
        if (!i || all.at[i] != all.at[plan->device_count - 1])
            all.at[plan->device_count++] = all.at[i];
    plan->devices = all.at;
}

int plan_slot(const Plan *plan, int device)
{
    int low = 0, high = plan->device_count - 1, dense = high < 0 ? -1 : device - plan->devices[0];
    if (dense >= 0 && dense <= high && plan->devices[dense] == device)
        return dense;
    while (low < high) {
        int middle = (low + high) / 2;
        if (plan->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < plan->device_count && plan->devices[low] == device ? low : -1;
}

/* ---- buckets ---- */

int ht_dtype_size(ht_dtype dtype)
{
    static const int sizes[] = {[HT_F32] = 4, [HT_BF16] = 2, [HT_F64] = 8, [HT_I32] = 4, [HT_I64] = 8};
    return sizes[dtype];
}

const Bucket *task_bucket(const Plan *plan, int task) { return &plan->buckets.at[plan->tasks.at[task].bucket]; }

int task_element(const Plan *plan, int task) { return task_bucket(plan, task)->element; }

/* ---- in place ---- */

static bool task_in_place(const Plan *plan, const Task *task)
{
    const Overlap *overlap = plan->buckets.at[task->bucket].overlap;
    for (int w = 0; w < task->targets.count; w++)
        if (!overlap_stays(overlap, &overlap->bundles[task->bundle], task->targets.at[w]))
            return false;
    return true;
}

/* Whether what moves goes through scratch, to be written where nothing is read any more. */
static bool goes_through_scratch(const Bucket *bucket, const Task *task)
{
    return bucket->overlap->side[SIDE_TO].partial == STATE_DUP && (task->local || task->origin == ORIGIN_LOCAL);
}

static void mark_moved(Plan *plan, const Segments *segments, bool reduced)
{
    for (int i = 0; i < segments->count; i++) {
        const Task *task = &plan->tasks.at[segments->at[i].task];
        Bucket *bucket = &plan->buckets.at[task->bucket];
        bucket->nothing = false;
        bucket->in_place = bucket->in_place && (reduced || goes_through_scratch(bucket, task));
    }
}

/* A bucket is in place when only all-reduces move it, in one step or by way of scratch, to where it already is. */
static void find_in_place(Plan *plan)
{
    for (int s = 0; s < plan->buckets.count; s++)
        plan->buckets.at[s].in_place = plan->buckets.at[s].nothing = true;
    for (int s = 0; s < plan->steps.count; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = 0; i < step_part_count(step); i++)
            mark_moved(plan, &step->parts[i], step->verb == HT_ALL_REDUCE);
        for (int i = 0; i < step->messages.count; i++)
            mark_moved(plan, &step->messages.at[i].segments, false);
    }
    for (int t = 0; t < plan->tasks.count; t++) {
        const Task *task = &plan->tasks.at[t];
        Bucket *bucket = &plan->buckets.at[task->bucket];
        bucket->in_place = bucket->in_place && (task->local || task_in_place(plan, task));
        bucket->nothing = bucket->nothing && bucket->in_place && task->source_count;
    }
    plan->in_place = plan->nothing = true;
    for (int s = 0; s < plan->buckets.count; s++) {
        plan->in_place = plan->in_place && plan->buckets.at[s].in_place;
        plan->nothing = plan->nothing && plan->buckets.at[s].nothing;
    }
}

bool plan_in_place(const Plan *plan) { return plan->in_place; }
bool plan_nothing(const Plan *plan) { return plan->nothing; }

/* ---- groups ---- */

static int group_index(Plan *plan, const Devices *devices)
{
    for (int g = 0; g < plan->groups.count; g++)
        if (plan->groups.at[g].count == devices->count &&
            !memcmp(plan->groups.at[g].device, devices->at, sizeof(int) * (size_t)devices->count))
            return g;
    array_push(plan->arena, &plan->groups, (ht_group){devices->count, devices->at});
    return plan->groups.count - 1;
}

const ht_group *plan_groups(const Plan *plan, int *count)
{
    *count = plan->groups.count;
    return plan->groups.at;
}

static void number_groups(Plan *plan)
{
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].group.count)
            plan->steps.at[s].group_index = group_index(plan, &plan->steps.at[s].group);
}

/* ---- types ---- */

/* Puts the segments with larger elements first: then each lies on a border of its elements wherever the list is packed. Notes the smallest
 * type in *step. */
static void order_by_element(Planner *planner, Segments *segments, Step *step, int *least)
{
    const Plan *plan = planner->plan;
    Segment *sorted = arena_array(planner->arena, Segment, segments->count);
    int kept = 0, largest = 8;
    for (int element = largest; element; element /= 2)
        for (int i = 0; i < segments->count; i++) {
            const Bucket *bucket = task_bucket(plan, segments->at[i].task);
            if (bucket->element != element)
                continue;
            sorted[kept++] = segments->at[i];
            if (!*least || element < *least) {
                *least = element;
                step->dtype = bucket->dtype;
            }
        }
    if (kept)
        memcpy(segments->at, sorted, sizeof *sorted * (size_t)kept);
}

static void find_types(Planner *planner)
{
    Plan *plan = planner->plan;
    for (int s = 0; s < plan->steps.count; s++) {
        Step *step = &plan->steps.at[s];
        int least = 0;
        for (int i = 0; i < step_part_count(step); i++)
            order_by_element(planner, &step->parts[i], step, &least);
        for (int i = 0; i < step->messages.count; i++)
            order_by_element(planner, &step->messages.at[i].segments, step, &least);
    }
}

/* ---- the planner ---- */

static void make_plan(Planner *planner, const Conversion *conversions, int count)
{
    Plan *plan = planner->plan;
    plan_buckets(planner, conversions, count);
    collect_devices(planner);
    planner->sent = plan->sent = arena_array(planner->arena, int64_t, plan->device_count);
    planner->received = plan->received = arena_array(planner->arena, int64_t, plan->device_count);
    plan_tasks(planner);
    plan_steps(planner);
    number_groups(plan);
    find_types(planner);
    find_in_place(plan);
    plan->name = name_plan(planner);
    plan->seconds = price_plan(planner);
}

const Plan *reshard_plan_all(Arena *arena, const Cluster *cluster, const Conversion *conversions, int count)
{
    Arena *scratch = arena_create();
    Plan *plan = arena_new(scratch, Plan);
    plan->arena = scratch;
    plan->cluster = cluster;
    make_plan(&(Planner){.arena = scratch, .plan = plan}, conversions, count);
    plan = plan_copy(arena, plan);
    plan->lowered = arena_array(arena, const ht_reshard_device *, plan->device_count);
    arena_destroy(scratch);
    return plan;
}

const Plan *reshard_plan(Arena *arena, const Cluster *cluster, const Conversion *conversion)
{
    return reshard_plan_all(arena, cluster, conversion, 1);
}
