/* Lowers collectives to a device's tables. reshard/reduce/reduce.h chooses all-reduce and
 * reduce-scatter, reshard/copy/copy.h the other collectives. */
#include "reshard/lower/lower.h"

#include "support/intern.h"

/* The blocks that a device sends and receives in a collective, with moves to pack and unpack. */
typedef struct Sides {
    Blocks send, receive;
    const ht_block *all; // the contiguous blocks of all members, instead of `send` or `receive`;
                         // NULL: `send` and `receive` have all blocks
    MoveList pack, unpack;
} Sides;

static void all_reduce_sides(Lowering *lowering, const Step *step, Sides *sides) {
    const Segments *all = shared_parts(lowering, step);
    ht_block send = send_block(lowering, all, &sides->pack), receive = {0};
    if (!find_block(lowering, all, true, &receive)) {
        int64_t bytes = send.count * lowering->unit;
        receive = send.place == HT_SCRATCH
                      ? send
                      : scratch_block(lowering, take_scratch(lowering, bytes), bytes);
        unpack_block(lowering, all, receive.offset * lowering->unit, &sides->unpack);
    }
    array_push(lowering->arena, &sides->send, send);
    array_push(lowering->arena, &sides->receive, receive);
}

/* Returns the blocks of all members' parts, contiguous from `first` on; equal lists are shared. */
static const ht_block *consecutive_blocks(Lowering *lowering, const Step *step, ht_block first) {
    const Plan *plan = lowering->plan;
    int64_t key[] = {(intptr_t)step, first.place, first.tensor, first.offset};
    const ht_block **known = intern_slot(plan->cache->blocks, key, sizeof key);
    if (*known) return *known;
    ht_block *blocks = arena_array(lowering->arena, ht_block, step->group.count);
    for (int i = 0; i < step->group.count; i++) {
        first.count = segments_bytes(plan, &step->parts[i]) / lowering->unit;
        blocks[i] = first;
        first.offset += first.count;
    }
    return *known = share_blocks(lowering, blocks, step->group.count);
}

/* Sets the sides of a reduce-scatter, or of a reduce, in which the root keeps all parts. */
static void reduce_scatter_sides(Lowering *lowering, const Step *step, int position, Sides *sides) {
    ht_block send = send_block(lowering, shared_parts(lowering, step), &sides->pack);
    if (step->verb == HT_REDUCE) array_push(lowering->arena, &sides->send, send);
    else sides->all = consecutive_blocks(lowering, step, send);
    if (step->verb == HT_REDUCE_SCATTER || !position)
        array_push(lowering->arena, &sides->receive,
                   receive_block(lowering, &step->parts[position], &sides->unpack));
}

/* Returns whether the non-empty blocks are in one buffer at offsets that an int can count. If so,
 * sets the buffer of the empty blocks, too. */
static bool one_buffer(Blocks *blocks) {
    const ht_block *first = NULL;
    int64_t lowest = INT64_MAX, highest = 0;
    for (int i = 0; i < blocks->count; i++) {
        const ht_block *block = &blocks->at[i];
        if (!block->count) continue;
        first = first ? first : block;
        if (block->place != first->place ||
            (first->place != HT_SCRATCH && block->tensor != first->tensor))
            return false;
        lowest = block->offset < lowest ? block->offset : lowest;
        highest = block->offset > highest ? block->offset : highest;
    }
    if (first && highest - lowest > INT32_MAX) return false;
    for (int i = 0; first && i < blocks->count; i++)
        if (!blocks->at[i].count) {
            blocks->at[i].place = first->place;
            blocks->at[i].tensor = first->tensor;
        }
    return true;
}

/* Returns whether an all-gather can receive into the blocks: equally long ones must be adjacent. */
static bool in_order(const Blocks *blocks) {
    bool even = true, follow = true;
    for (int i = 1; i < blocks->count; i++) {
        even = even && blocks->at[i].count == blocks->at[0].count;
        follow =
            follow && blocks->at[i].offset == blocks->at[i - 1].offset + blocks->at[i - 1].count;
    }
    return !even || follow;
}

/* Finds the blocks of an all-gather in the target's storage. Returns false if a part is not
 * contiguous in storage, or the blocks do not suit an all-gather. */
static bool gather_in_place(Lowering *lowering, const Step *step, Blocks *receive) {
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = {.place = HT_TO};
        if (step->parts[i].count && !find_block(lowering, &step->parts[i], true, &block))
            return false;
        array_push(lowering->arena, receive, block);
    }
    return one_buffer(receive) && in_order(receive);
}

static void all_gather_sides(Lowering *lowering, const Step *step, int position, Sides *sides) {
    const Segments *own = &step->parts[position];
    array_push(lowering->arena, &sides->send,
               own->count ? send_block(lowering, own, &sides->pack)
                          : (ht_block){.place = HT_SCRATCH});
    const Segments *all = shared_parts(lowering, step);
    ht_block block;
    if (find_block(lowering, all, true, &block) && block.count <= INT32_MAX) {
        sides->all = consecutive_blocks(lowering, step, block);
        return;
    }
    if (gather_in_place(lowering, step, &sides->receive)) return;
    int64_t offset = take_scratch(lowering, segments_bytes(lowering->plan, all));
    sides->all = consecutive_blocks(lowering, step, scratch_block(lowering, offset, 0));
    unpack_block(lowering, all, offset, &sides->unpack);
}

static void broadcast_sides(Lowering *lowering, const Step *step, int position, Sides *sides) {
    if (!position)
        array_push(lowering->arena, &sides->send,
                   send_block(lowering, &step->parts[0], &sides->pack));
    else
        array_push(lowering->arena, &sides->receive,
                   receive_block(lowering, &step->parts[0], &sides->unpack));
}

/* ---- all-to-all ---- */

/* Returns, by position in the group, the message from (`received`) or to the member; NULL: none. */
static const Message **messages_of(Lowering *lowering, const Step *step,
                                   const StepPlace *step_place, bool received) {
    const Plan *plan = lowering->plan;
    const Message **messages = arena_array(lowering->arena, const Message *, step->group.count),
                  **by_slot = arena_array(lowering->arena, const Message *, plan->device_count);
    for (int k = step_place->messages.count - 1; k >= 0; k--) {
        const Message *message = &step->messages.at[step_place->messages.at[k]];
        if ((received ? message->receiver : message->sender) == lowering->device)
            by_slot[plan_slot(plan, received ? message->sender : message->receiver)] = message;
    }
    for (int i = 0; i < step->group.count; i++)
        messages[i] = by_slot[plan_slot(plan, step->group.at[i])];
    return messages;
}

/* Finds the blocks to or from all members in one buffer. Returns false if a message is not
 * contiguous, or the blocks are in several buffers. */
static bool direct_blocks(Lowering *lowering, const Step *step, const Message *const *messages,
                          bool received, Blocks *blocks) {
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = {.place = HT_SCRATCH};
        if (messages[i] && !find_block(lowering, &messages[i]->segments, received, &block))
            return false;
        block.peer = step->group.at[i];
        array_push(lowering->arena, blocks, block);
    }
    return one_buffer(blocks);
}

static void packed_blocks(Lowering *lowering, const Step *step, const Message *const *messages,
                          bool received, Sides *sides) {
    Blocks *blocks = received ? &sides->receive : &sides->send;
    MoveList *moves = received ? &sides->unpack : &sides->pack;
    blocks->count = 0;
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = scratch_block(lowering, lowering->base + lowering->used, 0);
        if (messages[i] && !received) block = pack_block(lowering, &messages[i]->segments, moves);
        else if (messages[i]) {
            int64_t offset = take_scratch(lowering, messages[i]->bytes);
            block = scratch_block(lowering, offset, messages[i]->bytes);
            unpack_block(lowering, &messages[i]->segments, offset, moves);
        }
        block.peer = step->group.at[i];
        array_push(lowering->arena, blocks, block);
    }
}

static void all_to_all_sides(Lowering *lowering, const Step *step, const StepPlace *step_place,
                             Sides *sides) {
    for (int received = 0; received < 2; received++) {
        const Message **messages = messages_of(lowering, step, step_place, received);
        Blocks *blocks = received ? &sides->receive : &sides->send;
        if (!direct_blocks(lowering, step, messages, received, blocks))
            packed_blocks(lowering, step, messages, received, sides);
    }
}

/* ---- whole collectives ---- */

/* Returns the reduction of a collective's parts; HT_NO_REDUCTION if the step does not reduce. */
static ht_reduction step_reduction(const Plan *plan, const Step *step) {
    for (int i = 0; step_reduces(step) && i < step_part_count(step); i++)
        if (step->parts[i].count) return task_bucket(plan, step->parts[i].at[0].task)->reduction;
    return HT_NO_REDUCTION;
}

void lower_collective(Lowering *lowering, const Step *step, const StepPlace *step_place) {
    Sides sides = {0};
    int position = step_place->position;
    switch (step->verb) {
    case HT_ALL_REDUCE: all_reduce_sides(lowering, step, &sides); break;
    case HT_REDUCE_SCATTER:
    case HT_REDUCE: reduce_scatter_sides(lowering, step, position, &sides); break;
    case HT_ALL_GATHER: all_gather_sides(lowering, step, position, &sides); break;
    case HT_BROADCAST: broadcast_sides(lowering, step, position, &sides); break;
    case HT_ALL_TO_ALL: all_to_all_sides(lowering, step, step_place, &sides); break;
    default: BUG("a step of a plan is no communication");
    }
    const ht_block *sends = sides.all && step->verb == HT_REDUCE_SCATTER ? sides.all : NULL;
    const ht_block *receives = sides.all && step->verb == HT_ALL_GATHER ? sides.all : NULL;
    add_moves(lowering, HT_COPY, &sides.pack);
    add_lowered(
        lowering,
        (ht_reshard_step){
            .verb = step->verb,
            .dtype = step->dtype,
            .group = step->group_index,
            .reduction = step_reduction(lowering->plan, step),
            .send_count = sends ? step->group.count : sides.send.count,
            .receive_count = receives ? step->group.count : sides.receive.count,
            .send = sends ? sends : share_blocks(lowering, sides.send.at, sides.send.count),
            .receive = receives ? receives
                                : share_blocks(lowering, sides.receive.at, sides.receive.count)});
    add_moves(lowering, HT_COPY, &sides.unpack);
}
