/* Completes a plan's steps: numbers groups, finds types that steps move and tensors that stay. */
#include "reshard/plan_builder.h"

#include "reshard/cost/communication.h"

#include <string.h>

static bool task_in_place(const Plan *plan, const Task *task) {
    const Overlap *overlap = plan->buckets.at[task->bucket].overlap;
    for (int w = 0; w < task->targets.count; w++)
        if (!overlap_stays(overlap, &overlap->bundles.at[task->bundle], task->targets.at[w]))
            return false;
    return true;
}

/* Returns whether a task's data waits in scratch until all source data are read. */
static bool goes_through_scratch(const Bucket *bucket, const Task *task) {
    return bucket->overlap->side[SIDE_TO].partial == STATE_DUP &&
           (task->local || task->origin == ORIGIN_LOCAL);
}

static void mark_moved(Plan *plan, const Segments *segments, bool reduced) {
    for (int i = 0; i < segments->count; i++) {
        const Task *task = &plan->tasks.at[segments->at[i].task];
        Bucket *bucket = &plan->buckets.at[task->bucket];
        bucket->nothing = false;
        bucket->in_place = bucket->in_place && (reduced || goes_through_scratch(bucket, task));
    }
}

/* Sets `in_place` and `nothing` of buckets and plan. A bucket is in place if only all-reduces, or
 * moves through scratch, move its data, and each device stores target and source alike. */
static void find_in_place(Plan *plan) {
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

static int group_index(Plan *plan, const Devices *devices) {
    for (int g = 0; g < plan->groups.count; g++)
        if (plan->groups.at[g].count == devices->count &&
            !memcmp(plan->groups.at[g].device, devices->at, sizeof(int) * (size_t)devices->count))
            return g;
    array_push(plan->arena, &plan->groups, (ht_group){devices->count, devices->at});
    return plan->groups.count - 1;
}

static void number_groups(Plan *plan) {
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].group.count)
            plan->steps.at[s].group_index = group_index(plan, &plan->steps.at[s].group);
}

/* Sorts segments by element size, the largest first, so that each segment is aligned when the list
 * is packed. Lowers *least (0: none yet) and step->dtype to the smallest element type. */
static void order_by_element(PlanBuilder *planner, Segments *segments, Step *step, int *least) {
    const Plan *plan = planner->plan;
    Segment *sorted = arena_array(planner->arena, Segment, segments->count);
    int kept = 0, largest = 8;
    for (int element = largest; element; element /= 2)
        for (int i = 0; i < segments->count; i++) {
            const Bucket *bucket = task_bucket(plan, segments->at[i].task);
            if (bucket->element != element) continue;
            sorted[kept++] = segments->at[i];
            if (!*least || element < *least) {
                *least = element;
                step->dtype = bucket->dtype;
            }
        }
    if (kept) memcpy(segments->at, sorted, sizeof *sorted * (size_t)kept);
}

static void find_types(PlanBuilder *planner) {
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

void finish_plan(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    number_groups(plan);
    find_types(planner);
    find_in_place(plan);
    plan->name = name_plan(planner);
    plan->cache = plan_cache_create(planner->arena, plan->device_count);
    plan->seconds = price_steps(planner);
}
