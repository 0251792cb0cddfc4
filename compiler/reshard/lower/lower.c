/* Lowers a plan to the tables of one device. */
#include "reshard/lower/lower.h"

#include "support/intern.h"

#include <stdlib.h>

/* ---- the device's own part ---- */

static int compare_segments(const void *a, const void *b) {
    const Segment *x = a, *y = b;
    return x->task != y->task ? x->task - y->task : (x->lo > y->lo) - (x->lo < y->lo);
}

/* Returns the device's own source segments that all-gathers also bring, sorted by task and `lo`. */
static Segments gathered_segments(Lowering *lowering) {
    const Plan *plan = lowering->plan;
    Segments gathered = {0};
    for (int s = 0; s < lowering->device_steps->steps.count; s++) {
        const StepPlace *step_place = &lowering->device_steps->steps.at[s];
        const Step *step = &plan->steps.at[step_place->step];
        int position = step->verb == HT_ALL_GATHER ? step_place->position : -1;
        for (int k = 0; position >= 0 && k < step->parts[position].count; k++)
            if (step->parts[position].at[k].origin == ORIGIN_FROM)
                array_push(lowering->arena, &gathered, step->parts[position].at[k]);
    }
    if (gathered.count)
        qsort(gathered.at, (size_t)gathered.count, sizeof *gathered.at, compare_segments);
    return gathered;
}

/* Appends moves of the device's own elements of a task, except those that all-gathers bring. *next
 * is the index of the first gathered segment that may belong to the task, and is advanced. */
static void copy_own(Lowering *lowering, MoveList *copies, Segment own, const Segments *gathered,
                     int *next) {
    int64_t end = own.hi;
    while (*next < gathered->count && gathered->at[*next].task < own.task) ++*next;
    for (; *next < gathered->count && gathered->at[*next].task == own.task; ++*next) {
        own.hi = gathered->at[*next].lo;
        if (own.lo < own.hi)
            move_segment(lowering, copies, &own, stored_at(HT_FROM), stored_at(HT_TO));
        own.lo = gathered->at[*next].hi;
    }
    own.hi = end;
    if (own.lo < own.hi) move_segment(lowering, copies, &own, stored_at(HT_FROM), stored_at(HT_TO));
}

/* Appends the steps of the device's local copies, and of fills with reductions' identities. */
static void lower_local(Lowering *lowering) {
    MoveList copies = {0}, fills = {0};
    Segments gathered = gathered_segments(lowering);
    int next = 0;
    for (int t = 0; t < lowering->device_steps->tasks.count; t++) {
        const TaskPlace *step_place = &lowering->device_steps->tasks.at[t];
        const Task *task = &lowering->plan->tasks.at[step_place->task];
        if (!lowering->holding[SIDE_TO][task->bucket]) continue;
        Segment all = {.task = step_place->task, .hi = task->volume};
        if (!task->source_count)
            move_segment(lowering, &fills, &all, stored_at(HT_TO), stored_at(HT_TO));
        else if (step_place->holder) copy_own(lowering, &copies, all, &gathered, &next);
    }
    add_moves(lowering, HT_COPY, &copies);
    add_moves(lowering, HT_FILL, &fills);
}

/* Returns whether scratch is already reserved for the whole result of a local task. */
static bool has_room(const Lowering *lowering, const Segment *kept) {
    for (int k = 0; k < lowering->residents.count; k++)
        if (lowering->residents.at[k].segment.task == kept->task &&
            lowering->residents.at[k].segment.origin == kept->origin)
            return true;
    return false;
}

/* Reserves the scratch that keeps a partial reduction, or one of a local task, between steps. */
static void reserve(Lowering *lowering, const Segment *segment, bool partial) {
    const Task *task = &lowering->plan->tasks.at[segment->task];
    Segment kept = resident_segment(lowering->plan, *segment, partial);
    if (!partial && (!task->local || has_room(lowering, &kept))) return;
    if (!partial) {
        kept.lo = task->lo;
        kept.hi = task->lo + task->volume;
    }
    int64_t offset = take_scratch(lowering, segment_bytes(lowering->plan, &kept));
    array_push(lowering->arena, &lowering->residents, (Resident){kept, offset});
}

/* Reserves scratch for the device's part of a collective that reduces. */
static void reserve_parts(Lowering *lowering, const Step *step, int position) {
    const Segments *parts = position < 0 || !step_reduces(step)
                                ? NULL
                                : &step->parts[step->verb == HT_ALL_REDUCE ? 0 : position];
    for (int k = 0; parts && k < parts->count; k++) reserve(lowering, &parts->at[k], false);
}

static void reserve_residents(Lowering *lowering) {
    for (int s = 0; s < lowering->device_steps->steps.count; s++) {
        const StepPlace *step_place = &lowering->device_steps->steps.at[s];
        const Step *step = &lowering->plan->steps.at[step_place->step];
        reserve_parts(lowering, step, step_place->position);
        for (int k = 0; k < step_place->reductions.count; k++) {
            const Reducing *reduction = &step->reductions.at[step_place->reductions.at[k]];
            reserve(lowering, &reduction->segment, reduction->partial);
        }
    }
    lowering->base = lowering->used;
    lowering->used = lowering->most = 0;
}

static void lower_step(Lowering *lowering, const StepPlace *step_place) {
    const Step *step = &lowering->plan->steps.at[step_place->step];
    lowering->used = 0;
    lowering->shared_parts = NULL;
    lowering->dtype = step->dtype;
    lowering->unit = ht_dtype_size(step->dtype);
    if (step_place->position < 0) return;
    if (step->verb == HT_EXCHANGE) lower_exchange(lowering, step, step_place);
    else lower_collective(lowering, step, step_place);
}

static void find_holdings(Lowering *lowering) {
    for (int side = 0; side < 2; side++) {
        lowering->holding[side] =
            arena_array(lowering->arena, const Holding *, lowering->plan->buckets.count);
        for (int b = 0; b < lowering->plan->buckets.count; b++) {
            const Holdings *holdings = &lowering->plan->buckets.at[b].overlap->side[side];
            int number = holdings_find(holdings, lowering->device);
            lowering->holding[side][b] = number < 0 ? NULL : &holdings->list.at[number];
        }
    }
}

/* ---- tables ---- */

const ht_move *share_moves(Lowering *lowering, const ht_move *moves, int count) {
    Intern *shared = lowering->plan->cache->shared;
    ht_move *copy = arena_array(lowering->arena, ht_move, count);
    for (int m = 0; m < count; m++) {
        copy[m].from = moves[m].from;
        copy[m].to = moves[m].to;
        copy[m].tensor = moves[m].tensor;
        copy[m].from_offset = moves[m].from_offset;
        copy[m].to_offset = moves[m].to_offset;
        copy[m].rank = moves[m].rank;
        copy[m].dim = moves[m].rank ? intern(shared, moves[m].dim,
                                             sizeof *moves[m].dim * (size_t)moves[m].rank)
                                    : NULL;
    }
    return count ? intern(shared, copy, sizeof *copy * (size_t)count) : NULL;
}

const ht_block *share_blocks(Lowering *lowering, const ht_block *blocks, int count) {
    ht_block *copy = arena_array(lowering->arena, ht_block, count);
    for (int b = 0; b < count; b++) {
        copy[b].place = blocks[b].place;
        copy[b].tensor = blocks[b].tensor;
        copy[b].peer = blocks[b].peer;
        copy[b].offset = blocks[b].offset;
        copy[b].count = blocks[b].count;
    }
    return count ? intern(lowering->plan->cache->shared, copy, sizeof *copy * (size_t)count) : NULL;
}

/* Returns the device's tables without scratch data; devices with equal steps share them. */
static ht_reshard_device *copy_device(Arena *arena, Lowering *lowering) {
    int count = lowering->steps.count;
    ht_reshard_device *copy = arena_new(arena, ht_reshard_device);
    *copy = (ht_reshard_device){.device = lowering->device,
                                .step_count = count,
                                .scratch = lowering->base + lowering->most};
    copy->step = count ? intern(lowering->plan->cache->shared, lowering->steps.at,
                                sizeof *lowering->steps.at * (size_t)count)
                       : NULL;
    return copy;
}

static void lower_device(Lowering *lowering) {
    find_holdings(lowering);
    lower_local(lowering);
    reserve_residents(lowering);
    for (int s = 0; s < lowering->device_steps->steps.count; s++)
        lower_step(lowering, &lowering->device_steps->steps.at[s]);
}

const ht_reshard_device *plan_device(const Plan *plan, int device) {
    int slot = plan_slot(plan, device);
    if (slot < 0) {
        ht_reshard_device *none = arena_new(plan->arena, ht_reshard_device);
        none->device = device;
        return none;
    }
    if (!plan->cache->lowered[slot]) {
        Lowering lowering = {.plan = plan,
                             .arena = arena_create(),
                             .device = device,
                             .device_steps = plan_device_steps(plan, slot)};
        lower_device(&lowering);
        plan->cache->lowered[slot] = copy_device(plan->arena, &lowering);
        arena_destroy(lowering.arena);
    }
    return plan->cache->lowered[slot];
}

int64_t plan_scratch_bytes(const Plan *plan, int device) {
    return plan_device(plan, device)->scratch;
}

static const ht_reshard_tensor *lowered_tensors(Arena *arena, const Plan *plan) {
    ht_reshard_tensor *tensors = arena_array(arena, ht_reshard_tensor, plan->tensor_count);
    for (int s = 0; s < plan->buckets.count; s++) {
        const Bucket *bucket = &plan->buckets.at[s];
        for (int k = 0; k < bucket->tensor_count; k++)
            tensors[bucket->tensors[k]] =
                (ht_reshard_tensor){bucket->dtype, bucket->reduction, bucket->in_place};
    }
    return tensors;
}

const ht_reshard *plan_lowered(Arena *arena, const Plan *plan, const char *name) {
    ht_reshard *lowered = arena_new(arena, ht_reshard);
    ht_reshard_device *devices = arena_array(arena, ht_reshard_device, plan->device_count);
    for (int i = 0; i < plan->device_count; i++) devices[i] = *plan_device(plan, plan->devices[i]);
    *lowered = (ht_reshard){.name = name,
                            .kind = -1,
                            .tensor_count = plan->tensor_count,
                            .tensor = lowered_tensors(arena, plan),
                            .group_count = plan->groups.count,
                            .device_count = plan->device_count,
                            .group = plan->groups.at,
                            .device = devices};
    return lowered;
}
