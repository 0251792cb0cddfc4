/* Builds parts and moves once for all devices that have the same ones. */
#include "reshard/lower/lower.h"

#include "support/intern.h"

typedef struct SharedParts {
    Segments all;
    bool stored;        // no part is kept in scratch
    bool sent[2];       // by Side: some part is sent from the storage of that side
    Array(int) buckets; // numbers of the parts' buckets, each once
} SharedParts;

/* Appends a segment, or extends the last segment if the new one continues it. */
static void join_segment(Arena *arena, Segments *all, Segment segment) {
    Segment *last = all->count ? &all->at[all->count - 1] : NULL;
    if (last && last->task == segment.task && last->origin == segment.origin &&
        last->source == segment.source && last->hi == segment.lo)
        last->hi = segment.hi;
    else array_push(arena, all, segment);
}

static void find_buckets_of(const Plan *plan, SharedParts *parts) {
    parts->stored = true;
    for (int i = 0; i < parts->all.count; i++) {
        const Segment *segment = &parts->all.at[i];
        const Task *task = &plan->tasks.at[segment->task];
        parts->stored = parts->stored && !task->local &&
                        (segment->origin == ORIGIN_FROM || segment->origin == ORIGIN_TO);
        parts->sent[segment->origin == ORIGIN_FROM ? SIDE_FROM : SIDE_TO] = true;
        bool known = false;
        for (int k = 0; k < parts->buckets.count && !known; k++)
            known = parts->buckets.at[k] == task->bucket;
        if (!known) array_push(plan->arena, &parts->buckets, task->bucket);
    }
}

static SharedParts *make_shared_parts(const Plan *plan, const Step *step) {
    SharedParts *parts = arena_new(plan->arena, SharedParts);
    for (int i = 0; i < step_part_count(step) && step->verb != HT_ALL_REDUCE; i++)
        for (int k = 0; k < step->parts[i].count; k++)
            join_segment(plan->arena, &parts->all, step->parts[i].at[k]);
    if (step->verb == HT_ALL_REDUCE) parts->all = step->parts[0];
    find_buckets_of(plan, parts);
    return parts;
}

const Segments *shared_parts(Lowering *lowering, const Step *step) {
    SharedParts **known = intern_slot(lowering->plan->cache->step_parts, &step, sizeof step);
    if (!*known) *known = make_shared_parts(lowering->plan, step);
    lowering->shared_parts = *known;
    return &(*known)->all;
}

/* Returns a key that is equal for holdings with equally stored boxes; NULL if `holding` is NULL. */
static const void *storage_class(const Plan *plan, const Holding *holding) {
    if (!holding) return NULL;
    const void **known = intern_slot(plan->cache->step_parts, &holding, sizeof holding);
    if (*known) return *known;
    const Region *region = holding->region;
    size_t boxes = sizeof *region->boxes * (size_t)region->box_count,
           placing = region->placing ? sizeof *region->placing * (size_t)region->box_count : 0;
    intptr_t key[] = {(intptr_t)holding->layout, region->box_count,
                      (intptr_t)intern(plan->cache->step_parts, region->boxes, boxes),
                      placing ? (intptr_t)intern(plan->cache->step_parts, region->placing, placing)
                              : 0};
    const void *class = intern(plan->cache->step_parts, key, sizeof key);
    *(const void **)intern_slot(plan->cache->step_parts, &holding, sizeof holding) = class;
    return class;
}

/* Returns whether the moves of a list depend on how the device stores a side. */
static bool moves_touch(const SharedParts *parts, Way way, Side side) {
    return way == WAY_PACK ? parts->sent[side] : side == SIDE_TO;
}

MoveList *shared_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way) {
    const SharedParts *parts = lowering->shared_parts;
    if (!parts || segments != &parts->all || !parts->stored) return NULL;
    int count = parts->buckets.count;
    intptr_t key[3 + 2 * count];
    key[0] = (intptr_t)parts;
    key[1] = (intptr_t)offset;
    key[2] = way;
    for (int b = 0; b < count; b++)
        for (int side = 0; side < 2; side++)
            key[3 + 2 * b + side] =
                moves_touch(parts, way, side)
                    ? (intptr_t)storage_class(lowering->plan,
                                              lowering->holding[side][parts->buckets.at[b]])
                    : 0;
    MoveList **moves = intern_slot(lowering->plan->cache->step_parts, key, sizeof key);
    if (!*moves) {
        MoveList *made = arena_new(lowering->plan->arena, MoveList);
        moves = intern_slot(lowering->plan->cache->step_parts, key, sizeof key);
        *moves = made;
    }
    return *moves;
}
