#include "reshard/lower/shared_parts.h"

#include "support/intern.h"

typedef struct Whole {
    Segments all;
    bool stored;  // no part is in scratch
    bool sent[2]; // by Side: parts are sent from there
    Array(int) buckets;
} Whole;

/* Appends a segment; one that goes on where the last one ended becomes part of it. */
static void join_segment(Arena *arena, Segments *all, Segment segment) {
    Segment *last = all->count ? &all->at[all->count - 1] : NULL;
    if (last && last->task == segment.task && last->origin == segment.origin &&
        last->source == segment.source && last->hi == segment.lo)
        last->hi = segment.hi;
    else
        array_push(arena, all, segment);
}

static void find_buckets_of(const Plan *plan, Whole *whole) {
    whole->stored = true;
    for (int i = 0; i < whole->all.count; i++) {
        const Segment *segment = &whole->all.at[i];
        const Task *task = &plan->tasks.at[segment->task];
        whole->stored = whole->stored && !task->local &&
                        (segment->origin == ORIGIN_FROM || segment->origin == ORIGIN_TO);
        whole->sent[segment->origin == ORIGIN_FROM ? SIDE_FROM : SIDE_TO] = true;
        bool known = false;
        for (int k = 0; k < whole->buckets.count && !known; k++)
            known = whole->buckets.at[k] == task->bucket;
        if (!known) array_push(plan->arena, &whole->buckets, task->bucket);
    }
}

static Whole *make_whole(const Plan *plan, const Step *step) {
    Whole *whole = arena_new(plan->arena, Whole);
    for (int i = 0; i < step_part_count(step) && step->verb != HT_ALL_REDUCE; i++)
        for (int k = 0; k < step->parts[i].count; k++)
            join_segment(plan->arena, &whole->all, step->parts[i].at[k]);
    if (step->verb == HT_ALL_REDUCE) whole->all = step->parts[0];
    find_buckets_of(plan, whole);
    return whole;
}

const Segments *whole_of(Lowering *lowering, const Step *step) {
    Whole **known = intern_slot(lowering->plan->wholes, &step, sizeof step);
    if (!*known) *known = make_whole(lowering->plan, step);
    lowering->whole = *known;
    return &(*known)->all;
}

/* What is equal for holdings whose boxes lie alike; NULL: there is none. */
static const void *storage_class(const Plan *plan, const Holding *holding) {
    if (!holding) return NULL;
    const void **known = intern_slot(plan->wholes, &holding, sizeof holding);
    if (*known) return *known;
    const Region *region = holding->region;
    size_t boxes = sizeof *region->boxes * (size_t)region->box_count,
           placing = region->placing ? sizeof *region->placing * (size_t)region->box_count : 0;
    intptr_t key[] = {(intptr_t)holding->layout, region->box_count,
                      (intptr_t)intern(plan->wholes, region->boxes, boxes),
                      placing ? (intptr_t)intern(plan->wholes, region->placing, placing) : 0};
    const void *class = intern(plan->wholes, key, sizeof key);
    *(const void **)intern_slot(plan->wholes, &holding, sizeof holding) = class;
    return class;
}

/* Whether the moves of a list depend on how the device stores a side. */
static bool moves_touch(const Whole *whole, Way way, Side side) {
    return way == WAY_PACK ? whole->sent[side] : side == SIDE_TO;
}

MoveList *whole_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way) {
    const Whole *whole = lowering->whole;
    if (!whole || segments != &whole->all || !whole->stored) return NULL;
    int count = whole->buckets.count;
    intptr_t key[3 + 2 * count];
    key[0] = (intptr_t)whole;
    key[1] = (intptr_t)offset;
    key[2] = way;
    for (int b = 0; b < count; b++)
        for (int side = 0; side < 2; side++)
            key[3 + 2 * b + side] =
                moves_touch(whole, way, side)
                    ? (intptr_t)storage_class(lowering->plan,
                                              lowering->holding[side][whole->buckets.at[b]])
                    : 0;
    MoveList **moves = intern_slot(lowering->plan->wholes, key, sizeof key);
    if (!*moves) {
        MoveList *made = arena_new(lowering->plan->arena, MoveList);
        moves = intern_slot(lowering->plan->wholes, key, sizeof key);
        *moves = made;
    }
    return *moves;
}
