/* Lowers exchanges of messages, and the reductions of received contributions. */
#include "reshard/lower/lower.h"

#include <stdlib.h>

/* A contribution to a reduction: its segment, with its number as `source`, and its place. */
typedef struct SentContribution {
    Segment segment;
    Where where;
} SentContribution;

typedef Array(SentContribution) SentContributions;

static int compare_contributions(const void *a, const void *b) {
    const SentContribution *x = a, *y = b;
    if (x->segment.source != y->segment.source) return x->segment.source - y->segment.source;
    return (x->segment.lo > y->segment.lo) - (x->segment.lo < y->segment.lo);
}

/* Compares contributions by task, then as compare_contributions does. */
static int compare_by_task(const void *a, const void *b) {
    const SentContribution *x = a, *y = b;
    return x->segment.task != y->segment.task ? x->segment.task - y->segment.task
                                              : compare_contributions(a, b);
}

/* Adds the device's own contribution to the segment's task, if the device holds one. */
static void add_own(Lowering *lowering, const Segment *segment, SentContributions *contributions) {
    const Task *task = &lowering->plan->tasks.at[segment->task];
    for (int p = 0; p < task->source_count; p++)
        if (devices_find(&task->sources[p], lowering->device) >= 0) {
            SentContribution own = {.segment = *segment};
            own.segment.source = p;
            own.segment.origin = task->origin;
            own.where = origin_of(lowering, &own.segment);
            array_push(lowering->arena, contributions, own);
            return;
        }
}

/* Appends the move of a part of a contribution to the place of its reduction. */
static void move_part(Lowering *lowering, MoveList *moves, const SentContribution *contribution,
                      Range range, Where to) {
    Segment part = contribution->segment;
    Where from = contribution->where;
    from.offset += (range.lo - part.lo) * task_element(lowering->plan, part.task);
    part.lo = range.lo;
    part.hi = range.hi;
    move_segment(lowering, moves, &part, from, to);
}

/* The moves of reductions: copies to the place of a result, and combines with that place. */
typedef struct Moves {
    MoveList copies, combines;
} Moves;

/* Appends the moves that reduce contributions to `to`, in the order of their numbers: in each range
 * that a fixed set of contributions covers, a copy of the first one, and combines of the others. */
static void reduce(Lowering *lowering, const SentContributions *contributions,
                   const Segment *target, Where to, Moves *moves) {
    int64_t element = task_element(lowering->plan, target->task);
    if (contributions->count)
        qsort(contributions->at, (size_t)contributions->count, sizeof *contributions->at,
              compare_contributions);
    for (int64_t lo = target->lo, hi; lo < target->hi; to.offset += (hi - lo) * element, lo = hi) {
        hi = target->hi;
        for (int i = 0; i < contributions->count; i++) {
            const Segment *segment = &contributions->at[i].segment;
            hi = segment->lo > lo && segment->lo < hi ? segment->lo : hi;
            hi = segment->hi > lo && segment->hi < hi ? segment->hi : hi;
        }
        bool first = true;
        for (int i = 0; i < contributions->count; i++) {
            const SentContribution *contribution = &contributions->at[i];
            if (contribution->segment.lo > lo || contribution->segment.hi < hi) continue;
            move_part(lowering, first ? &moves->copies : &moves->combines, contribution,
                      (Range){lo, hi}, to);
            first = false;
        }
    }
}

/* Returns all contributions that the device received in this step, sorted by task; `offsets` has
 * the offset in scratch of each received message, in bytes. */
static SentContributions all_received(Lowering *lowering, const Step *step,
                                      const StepPlace *step_place, const int64_t *offsets) {
    SentContributions all = {0};
    for (int i = 0, k = 0; i < step_place->messages.count; i++) {
        const Message *message = &step->messages.at[step_place->messages.at[i]];
        if (message->receiver != lowering->device) continue;
        int64_t offset = offsets[k++];
        for (int s = 0; s < message->segments.count; s++) {
            array_push(lowering->arena, &all,
                       (SentContribution){message->segments.at[s], packed_at(offset)});
            offset += segment_bytes(lowering->plan, &message->segments.at[s]);
        }
    }
    if (all.count) qsort(all.at, (size_t)all.count, sizeof *all.at, compare_by_task);
    return all;
}

/* Adds the received contributions that belong to a reduction. */
static void add_received(Lowering *lowering, const SentContributions *all, const Segment *target,
                         SentContributions *contributions) {
    int low = 0, high = all->count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (all->at[middle].segment.task < target->task) low = middle + 1;
        else high = middle;
    }
    for (; low < all->count && all->at[low].segment.task == target->task; low++)
        if (all->at[low].segment.lo < target->hi && target->lo < all->at[low].segment.hi)
            array_push(lowering->arena, contributions, all->at[low]);
}

/* Returns the place where a reduction's result is stored. */
static Where reduced_at(const Lowering *lowering, const Reducing *reduction) {
    Segment kept = resident_segment(lowering->plan, reduction->segment, true);
    return reduction->partial ? origin_of(lowering, &kept)
                              : result_of(lowering, &reduction->segment);
}

static void reduce_all(Lowering *lowering, const Step *step, const StepPlace *step_place,
                       const int64_t *offsets) {
    Moves moves = {0};
    SentContributions all = all_received(lowering, step, step_place, offsets);
    for (int r = 0; r < step_place->reductions.count; r++) {
        const Reducing *reduction = &step->reductions.at[step_place->reductions.at[r]];
        SentContributions contributions = {0};
        add_own(lowering, &reduction->segment, &contributions);
        add_received(lowering, &all, &reduction->segment, &contributions);
        reduce(lowering, &contributions, &reduction->segment, reduced_at(lowering, reduction),
               &moves);
    }
    add_moves(lowering, HT_COPY, &moves.copies);
    add_moves(lowering, HT_COMBINE, &moves.combines);
}

void lower_exchange(Lowering *lowering, const Step *step, const StepPlace *step_place) {
    MoveList pack = {0}, unpack = {0};
    Blocks send = {0}, receive = {0};
    Array(int64_t) offsets = {0};
    for (int i = 0; i < step_place->messages.count; i++) {
        const Message *message = &step->messages.at[step_place->messages.at[i]];
        if (message->sender == lowering->device) {
            ht_block block = send_block(lowering, &message->segments, &pack);
            block.peer = message->receiver;
            array_push(lowering->arena, &send, block);
        } else if (message->receiver == lowering->device) {
            int64_t offset = step->combine ? take_scratch(lowering, message->bytes) : 0;
            ht_block block = step->combine ? scratch_block(lowering, offset, message->bytes)
                                           : receive_block(lowering, &message->segments, &unpack);
            block.peer = message->sender;
            array_push(lowering->arena, &offsets, offset);
            array_push(lowering->arena, &receive, block);
        }
    }
    add_moves(lowering, HT_COPY, &pack);
    if (send.count || receive.count)
        add_lowered(lowering, (ht_reshard_step){
                                  .verb = HT_EXCHANGE,
                                  .dtype = step->dtype,
                                  .send_count = send.count,
                                  .receive_count = receive.count,
                                  .send = share_blocks(lowering, send.at, send.count),
                                  .receive = share_blocks(lowering, receive.at, receive.count)});
    add_moves(lowering, HT_COPY, &unpack);
    if (step->combine) reduce_all(lowering, step, step_place, offsets.at);
}
