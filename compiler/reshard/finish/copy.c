/* A copy of a plan without what planning left behind. */
#include "reshard/finish/finish.h"

/* ---- the overlap ---- */

static Region *copy_region(Arena *arena, const Region *region)
{
    Region *copy = arena_copy(arena, region, sizeof *region);
    copy->boxes = COPY(arena, region->boxes, region->box_count);
    copy->placing = region->placing ? COPY(arena, region->placing, region->box_count) : NULL;
    return copy;
}

static void copy_holdings(Arena *arena, Holdings *side)
{
    COPY_ARRAY(arena, &side->list);
    for (int h = 0; h < side->list.count; h++) {
        COPY_ARRAY(arena, &side->list.at[h].devices);
        side->list.at[h].region = copy_region(arena, side->list.at[h].region);
    }
    side->members = COPY(arena, side->members, side->device_count);
}

static const Overlap *copy_overlap(Arena *arena, const Overlap *overlap)
{
    Overlap *copy = arena_copy(arena, overlap, sizeof *overlap);
    copy->view.shape.extent = COPY(arena, overlap->view.shape.extent, overlap->view.shape.rank);
    for (int f = 0; f < overlap->view.rank; f++)
        copy->cuts[f] = COPY(arena, overlap->cuts[f], overlap->cut_count[f]);
    for (int side = 0; side < 2; side++)
        copy_holdings(arena, &copy->side[side]);
    COPY_ARRAY(arena, &copy->bundles);
    for (int b = 0; b < copy->bundles.count; b++) {
        Bundle *bundle = &copy->bundles.at[b];
        COPY_ARRAY(arena, &bundle->cells);
        for (int side = 0; side < 2; side++)
            bundle->holders[side] = COPY(arena, bundle->holders[side], bundle->holder_count[side]);
    }
    return copy;
}

/* ---- the plan ---- */

static void copy_bucket(Arena *arena, Bucket *bucket)
{
    bucket->overlap = copy_overlap(arena, bucket->overlap);
    bucket->tensors = COPY(arena, bucket->tensors, bucket->tensor_count);
}

/* `before` is the task in front of it and `copy` what it became, whose lists it shares where they are the same; NULL: there is none. */
static void copy_task(Arena *arena, Task *task, const Task *before, const Task *copy)
{
    if (before && before->targets.at == task->targets.at && before->targets.count == task->targets.count)
        task->targets = copy->targets;
    else
        COPY_ARRAY(arena, &task->targets);
    if (before && before->sources == task->sources && before->source_count == task->source_count) {
        task->sources = copy->sources;
        return;
    }
    task->sources = COPY(arena, task->sources, task->source_count);
    for (int p = 0; p < task->source_count; p++)
        COPY_ARRAY(arena, &task->sources[p]);
}

static void copy_step(Arena *arena, Step *step)
{
    int parts = step_part_count(step);
    COPY_ARRAY(arena, &step->group);
    COPY_ARRAY(arena, &step->messages);
    COPY_ARRAY(arena, &step->reductions);
    step->parts = COPY(arena, step->parts, parts);
    for (int i = 0; i < parts; i++)
        COPY_ARRAY(arena, &step->parts[i]);
    for (int i = 0; i < step->messages.count; i++)
        COPY_ARRAY(arena, &step->messages.at[i].segments);
}

Plan *plan_copy(Arena *arena, const Plan *plan)
{
    Plan *copy = arena_copy(arena, plan, sizeof *plan);
    copy->arena = arena;
    copy->devices = COPY(arena, plan->devices, plan->device_count);
    copy->slots = COPY(arena, plan->slots, plan->span);
    copy->received = COPY(arena, plan->received, plan->device_count);
    copy->sent = COPY(arena, plan->sent, plan->device_count);
    copy->name = arena_string(arena, plan->name);
    COPY_ARRAY(arena, &copy->buckets);
    COPY_ARRAY(arena, &copy->tasks);
    COPY_ARRAY(arena, &copy->steps);
    COPY_ARRAY(arena, &copy->groups);
    for (int s = 0; s < copy->buckets.count; s++)
        copy_bucket(arena, &copy->buckets.at[s]);
    for (int t = 0; t < copy->tasks.count; t++)
        copy_task(arena, &copy->tasks.at[t], t ? &plan->tasks.at[t - 1] : NULL, t ? &copy->tasks.at[t - 1] : NULL);
    for (int s = 0; s < copy->steps.count; s++)
        copy_step(arena, &copy->steps.at[s]);
    for (int g = 0; g < copy->groups.count; g++)
        copy->groups.at[g].device = COPY(arena, copy->groups.at[g].device, copy->groups.at[g].count);
    return copy;
}
