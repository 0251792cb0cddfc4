/* Lowering: collectives. */
#include "reshard/lower/lower.h"

static ht_reshard_step collective(const Step *step)
{
    return (ht_reshard_step){.verb = step->verb, .dtype = step->dtype, .group = step->group_index};
}

/* A collective that reduces what `segments` are part of. */
static ht_reshard_step reducing_collective(const Lowering *lowering, const Step *step, const Segments *segments)
{
    ht_reshard_step lowered = collective(step);
    lowered.reduction = task_bucket(lowering->plan, segments->at[0].task)->reduction;
    return lowered;
}

static const ht_block *copy_block(Lowering *lowering, ht_block block) { return arena_copy(lowering->arena, &block, sizeof block); }

/* Appends a collective between the moves that pack what it sends and those that unpack what it receives. */
static void add_between(Lowering *lowering, const Moves *pack, ht_reshard_step step, const Moves *unpack)
{
    add_moves(lowering, HT_COPY, pack);
    add_lowered(lowering, step);
    add_moves(lowering, HT_COPY, unpack);
}

static void lower_all_reduce(Lowering *lowering, const Step *step)
{
    Moves pack = {0}, unpack = {0};
    const Segments *all = &step->parts[0];
    ht_reshard_step lowered = reducing_collective(lowering, step, all);
    ht_block send = send_block(lowering, all, &pack), receive = {0};
    if (!find_block(lowering, all, true, &receive)) {
        int64_t bytes = send.count * lowering->unit;
        receive = send.place == HT_SCRATCH ? send : scratch_block(lowering, take_scratch(lowering, bytes), bytes);
        unpack_block(lowering, all, receive.offset * lowering->unit, &unpack);
    }
    lowered.send_count = lowered.receive_count = 1;
    lowered.send = copy_block(lowering, send);
    lowered.receive = copy_block(lowering, receive);
    add_between(lowering, &pack, lowered, &unpack);
}

/* All parts of a collective, one after another. */
static Segments all_parts(const Lowering *lowering, const Step *step)
{
    Segments all = {0};
    for (int i = 0; i < step->group.count; i++)
        for (int k = 0; k < step->parts[i].count; k++)
            array_push(lowering->arena, &all, step->parts[i].at[k]);
    return all;
}

/* The blocks of all members' parts, which lie one after another from `first` on. */
static void consecutive_blocks(Lowering *lowering, const Step *step, ht_block first, Blocks *blocks)
{
    for (int i = 0; i < step->group.count; i++) {
        first.count = segments_bytes(lowering->plan, &step->parts[i]) / lowering->unit;
        array_push(lowering->arena, blocks, first);
        first.offset += first.count;
    }
}

/* Also HT_REDUCE: then the root's part is all. */
static void lower_reduce_scatter(Lowering *lowering, const Step *step, int position)
{
    Moves pack = {0}, unpack = {0};
    Blocks send = {0};
    Segments all = all_parts(lowering, step);
    ht_reshard_step lowered = reducing_collective(lowering, step, &all);
    consecutive_blocks(lowering, step, send_block(lowering, &all, &pack), &send);
    lowered.send = send.at;
    lowered.send_count = step->verb == HT_REDUCE ? 1 : send.count;
    if (step->verb == HT_REDUCE_SCATTER || !position) {
        lowered.receive = copy_block(lowering, receive_block(lowering, &step->parts[position], &unpack));
        lowered.receive_count = 1;
    }
    add_between(lowering, &pack, lowered, &unpack);
}

/* Whether blocks that have something lie in one buffer, in places that an int counts; then the others are put there, too. */
static bool one_buffer(Blocks *blocks)
{
    const ht_block *first = NULL;
    int64_t lowest = INT64_MAX, highest = 0;
    for (int i = 0; i < blocks->count; i++) {
        const ht_block *block = &blocks->at[i];
        if (!block->count)
            continue;
        first = first ? first : block;
        if (block->place != first->place || (first->place != HT_SCRATCH && block->tensor != first->tensor))
            return false;
        lowest = block->offset < lowest ? block->offset : lowest;
        highest = block->offset > highest ? block->offset : highest;
    }
    if (first && highest - lowest > INT32_MAX)
        return false;
    for (int i = 0; first && i < blocks->count; i++)
        if (!blocks->at[i].count) {
            blocks->at[i].place = first->place;
            blocks->at[i].tensor = first->tensor;
        }
    return true;
}

/* Whether blocks lie as a gather needs them: those of equal counts one after another. */
static bool in_order(const Blocks *blocks)
{
    bool even = true, follow = true;
    for (int i = 1; i < blocks->count; i++) {
        even = even && blocks->at[i].count == blocks->at[0].count;
        follow = follow && blocks->at[i].offset == blocks->at[i - 1].offset + blocks->at[i - 1].count;
    }
    return !even || follow;
}

/* The blocks of a gather where the target stores each; false when some part is not contiguous there. */
static bool gather_in_place(Lowering *lowering, const Step *step, Blocks *receive)
{
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = {.place = HT_TO};
        if (step->parts[i].count && !find_block(lowering, &step->parts[i], true, &block))
            return false;
        array_push(lowering->arena, receive, block);
    }
    return one_buffer(receive) && in_order(receive);
}

static void lower_all_gather(Lowering *lowering, const Step *step, int position)
{
    Moves pack = {0}, unpack = {0};
    Blocks receive = {0};
    ht_reshard_step lowered = collective(step);
    ht_block send = {.place = HT_SCRATCH};
    if (step->parts[position].count)
        send = send_block(lowering, &step->parts[position], &pack);
    if (!gather_in_place(lowering, step, &receive)) {
        Segments all = all_parts(lowering, step);
        int64_t offset = take_scratch(lowering, segments_bytes(lowering->plan, &all));
        receive.count = 0;
        consecutive_blocks(lowering, step, scratch_block(lowering, offset, 0), &receive);
        unpack_block(lowering, &all, offset, &unpack);
    }
    lowered.send = copy_block(lowering, send);
    lowered.send_count = 1;
    lowered.receive = receive.at;
    lowered.receive_count = receive.count;
    add_between(lowering, &pack, lowered, &unpack);
}

static void lower_broadcast(Lowering *lowering, const Step *step, int position)
{
    Moves pack = {0}, unpack = {0};
    ht_reshard_step lowered = collective(step);
    if (!position) {
        lowered.send = copy_block(lowering, send_block(lowering, &step->parts[0], &pack));
        lowered.send_count = 1;
    } else {
        lowered.receive = copy_block(lowering, receive_block(lowering, &step->parts[0], &unpack));
        lowered.receive_count = 1;
    }
    add_between(lowering, &pack, lowered, &unpack);
}

/* ---- all-to-all ---- */

static const Message *find_message(const Step *step, int sender, int receiver)
{
    for (int i = 0; i < step->messages.count; i++)
        if (step->messages.at[i].sender == sender && step->messages.at[i].receiver == receiver)
            return &step->messages.at[i];
    return NULL;
}

/* The messages to or from all members, in the group's order; NULL where there is none. */
static const Message **messages_of(Lowering *lowering, const Step *step, bool received)
{
    const Message **messages = arena_array(lowering->arena, const Message *, step->group.count);
    for (int i = 0; i < step->group.count; i++)
        messages[i] =
            received ? find_message(step, step->group.at[i], lowering->device) : find_message(step, lowering->device, step->group.at[i]);
    return messages;
}

/* The blocks to or from all members when all lie in one buffer; false when one does not. */
static bool direct_blocks(Lowering *lowering, const Step *step, const Message *const *messages, bool received, Blocks *blocks)
{
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = {.place = HT_SCRATCH};
        if (messages[i] && !find_block(lowering, &messages[i]->segments, received, &block))
            return false;
        block.peer = step->group.at[i];
        array_push(lowering->arena, blocks, block);
    }
    return one_buffer(blocks);
}

static void packed_blocks(Lowering *lowering, const Step *step, const Message *const *messages, bool received, Blocks *blocks, Moves *moves)
{
    blocks->count = 0;
    for (int i = 0; i < step->group.count; i++) {
        ht_block block = scratch_block(lowering, lowering->base + lowering->used, 0);
        if (messages[i] && !received)
            block = pack_block(lowering, &messages[i]->segments, moves);
        else if (messages[i]) {
            int64_t offset = take_scratch(lowering, messages[i]->bytes);
            block = scratch_block(lowering, offset, messages[i]->bytes);
            unpack_block(lowering, &messages[i]->segments, offset, moves);
        }
        block.peer = step->group.at[i];
        array_push(lowering->arena, blocks, block);
    }
}

static void lower_all_to_all(Lowering *lowering, const Step *step)
{
    Moves moves[2] = {{0}};
    Blocks blocks[2] = {{0}};
    ht_reshard_step lowered = collective(step);
    for (int received = 0; received < 2; received++) {
        const Message **messages = messages_of(lowering, step, received);
        if (!direct_blocks(lowering, step, messages, received, &blocks[received]))
            packed_blocks(lowering, step, messages, received, &blocks[received], &moves[received]);
    }
    lowered.send = blocks[0].at;
    lowered.send_count = blocks[0].count;
    lowered.receive = blocks[1].at;
    lowered.receive_count = blocks[1].count;
    add_between(lowering, &moves[0], lowered, &moves[1]);
}

void lower_collective(Lowering *lowering, const Step *step, int position)
{
    switch (step->verb) {
    case HT_ALL_REDUCE: lower_all_reduce(lowering, step); break;
    case HT_REDUCE_SCATTER:
    case HT_REDUCE: lower_reduce_scatter(lowering, step, position); break;
    case HT_ALL_GATHER: lower_all_gather(lowering, step, position); break;
    case HT_BROADCAST: lower_broadcast(lowering, step, position); break;
    case HT_ALL_TO_ALL: lower_all_to_all(lowering, step); break;
    default: BUG("a step of a plan is no communication");
    }
}
