/* Lowering: what one device does in a plan, as the tables of <hetu/reshard.h>.
 *
 * Pieces that are contiguous in a tensor's storage are sent from there and received there; others are packed in scratch. Scratch begins
 * with the reductions that are not complete and are needed later; behind it each step has its own packing space.
 */
#include "layout/plan_build.h"

#include <stdlib.h>
#include <string.h>

/* Where the elements of segments lie: in the device's storage, or packed from an offset on. */
typedef struct Where {
    ht_place place;
    bool packed;
    int64_t offset; // packed: of the first element
} Where;

typedef Array(ht_move) Moves;
typedef Array(ht_block) Blocks;

/* A reduction that lies in scratch. */
typedef struct Kept {
    Segment segment;
    int64_t offset;
} Kept;

typedef struct Lowering {
    const Plan *plan;
    Arena *arena;
    int device;
    int piece[2]; // of the device; -1: it stands in that layout nowhere
    Array(ht_reshard_step) steps;
    Array(Kept) kept;
    int64_t base, used, most; // elements of scratch: where a step's space begins, what it has used, and the most of all steps
} Lowering;

static const Bundle *bundle_of(const Lowering *lowering, const Segment *segment)
{
    return &lowering->plan->cells->bundles[lowering->plan->tasks.at[segment->task].bundle];
}

static int64_t volume_of(const Segment *segment) { return segment->hi - segment->lo; }

static int64_t volume_of_all(const Segments *segments)
{
    int64_t volume = 0;
    for (int i = 0; i < segments->count; i++)
        volume += volume_of(&segments->at[i]);
    return volume;
}

/* ---- moves ---- */

/* Merges dimensions that are one on both sides, and drops those of extent 1. */
static int merge_dimensions(ht_stride *dim, int rank)
{
    int kept = 0;
    for (int d = 0; d < rank; d++) {
        if (dim[d].extent == 1)
            continue;
        ht_stride *last = kept ? &dim[kept - 1] : NULL;
        if (last && last->from == dim[d].from * dim[d].extent && last->to == dim[d].to * dim[d].extent)
            *last = (ht_stride){last->extent * dim[d].extent, dim[d].from, dim[d].to};
        else
            dim[kept++] = dim[d];
    }
    return kept;
}

static bool is_contiguous(const ht_move *move)
{
    return !move->rank || (move->rank == 1 && move->dim[0].from == 1 && move->dim[0].to == 1);
}

static int64_t move_extent(const ht_move *move) { return move->rank ? move->dim[0].extent : 1; }

/* Appends a move; one that goes on where the last one ended is merged with it. */
static void add_move(Lowering *lowering, Moves *moves, ht_move move, const ht_stride *dim)
{
    move.dim = dim;
    ht_move *last = moves->count ? &moves->at[moves->count - 1] : NULL;
    if (last && is_contiguous(last) && is_contiguous(&move) && last->from == move.from && last->to == move.to) {
        int64_t extent = move_extent(last);
        if (last->from_offset + extent == move.from_offset && last->to_offset + extent == move.to_offset) {
            ht_stride *joined = arena_new(lowering->arena, ht_stride);
            *joined = (ht_stride){extent + move_extent(&move), 1, 1};
            last->dim = joined;
            last->rank = 1;
            return;
        }
    }
    move.dim = arena_copy(lowering->arena, dim, sizeof *dim * (size_t)move.rank);
    array_push(lowering->arena, moves, move);
}

/* The place of a cell in the device's storage or in packed space; `begin` is how far into the packed space the cell starts. */
static int64_t cell_place(const Lowering *lowering, const Where *where, int cell, const int64_t *extents, int64_t begin, int64_t *strides)
{
    const Cells *cells = lowering->plan->cells;
    if (!where->packed)
        return cell_storage(cells, where->place == HT_TO ? SIDE_TO : SIDE_FROM,
                            lowering->piece[where->place == HT_TO ? SIDE_TO : SIDE_FROM], cell, strides);
    int64_t step = 1;
    for (int f = cells->rank - 1; f >= 0; f--) {
        strides[f] = step;
        step *= extents[f];
    }
    return where->offset + begin;
}

/* Moves the elements [lo, hi) of a cell, which begins `begin` elements into the packed space (it may begin before it). */
static void move_cell(Lowering *lowering, Moves *moves, int cell, int64_t lo, int64_t hi, int64_t begin, const Where *from, const Where *to)
{
    const Cells *cells = lowering->plan->cells;
    int64_t extents[CELL_MAX_RANK], from_strides[CELL_MAX_RANK], to_strides[CELL_MAX_RANK];
    cell_extents(cells, cell, extents);
    int64_t from_at = cell_place(lowering, from, cell, extents, begin, from_strides),
            to_at = cell_place(lowering, to, cell, extents, begin, to_strides);
    int count;
    const Range *boxes = range_boxes(lowering->arena, extents, cells->rank, lo, hi, &count);
    for (int b = 0; b < count; b++) {
        ht_stride dim[CELL_MAX_RANK];
        ht_move move = {.from = from->place, .to = to->place, .from_offset = from_at, .to_offset = to_at};
        for (int f = 0; f < cells->rank; f++) {
            Range range = boxes[b * cells->rank + f];
            move.from_offset += range.lo * from_strides[f];
            move.to_offset += range.lo * to_strides[f];
            dim[f] = (ht_stride){range.hi - range.lo, from_strides[f], to_strides[f]};
        }
        move.rank = merge_dimensions(dim, cells->rank);
        add_move(lowering, moves, move, dim);
    }
}

/* Moves a segment. Packed offsets are those of the segment's first element. */
static void move_segment(Lowering *lowering, Moves *moves, const Segment *segment, Where from, Where to)
{
    const Bundle *bundle = bundle_of(lowering, segment);
    int64_t extents[CELL_MAX_RANK];
    for (int64_t c = 0, before = 0; c < bundle->cell_count && before < segment->hi; c++) {
        int64_t volume = cell_extents(lowering->plan->cells, bundle->cells[c], extents);
        int64_t lo = segment->lo > before ? segment->lo - before : 0, hi = segment->hi - before < volume ? segment->hi - before : volume;
        if (lo < hi)
            move_cell(lowering, moves, bundle->cells[c], lo, hi, before - segment->lo, &from, &to);
        before += volume;
    }
}

static Where stored_at(ht_place place) { return (Where){.place = place}; }

static Where packed_at(int64_t offset) { return (Where){.place = HT_SCRATCH, .packed = true, .offset = offset}; }

/* Where the device has a segment that it sends. */
static Where origin_of(const Lowering *lowering, const Segment *segment)
{
    if (segment->origin != ORIGIN_PARTIAL)
        return stored_at(segment->origin == ORIGIN_FROM ? HT_FROM : HT_TO);
    for (int k = 0; k < lowering->kept.count; k++) {
        const Kept *kept = &lowering->kept.at[k];
        if (kept->segment.task == segment->task && kept->segment.lo <= segment->lo && segment->hi <= kept->segment.hi)
            return packed_at(kept->offset + segment->lo - kept->segment.lo);
    }
    BUG("device %d has no part of the reduction that it shall send", lowering->device);
}

/* ---- blocks ---- */

/* Space in scratch for a step; on 64-byte borders. */
static int64_t take_scratch(Lowering *lowering, int64_t elements)
{
    int64_t unit = 64 / lowering->plan->element, at = lowering->base + lowering->used;
    lowering->used += (elements + unit - 1) / unit * unit;
    lowering->most = lowering->used > lowering->most ? lowering->used : lowering->most;
    return at;
}

/* The moves that pack segments from their origins, or from the target's storage when `received`, to a place in scratch. */
static Moves packing_moves(Lowering *lowering, const Segments *segments, int64_t offset, bool received)
{
    Moves moves = {0};
    for (int i = 0; i < segments->count; i++) {
        move_segment(lowering, &moves, &segments->at[i], received ? stored_at(HT_TO) : origin_of(lowering, &segments->at[i]),
                     packed_at(offset));
        offset += volume_of(&segments->at[i]);
    }
    return moves;
}

/* Whether segments lie one after another in one buffer: then that is the block. */
static bool find_block(Lowering *lowering, const Segments *segments, bool received, ht_block *block)
{
    Moves moves = packing_moves(lowering, segments, 0, received);
    if (moves.count != 1 || !is_contiguous(&moves.at[0]))
        return false;
    *block = (ht_block){.place = moves.at[0].from, .offset = moves.at[0].from_offset, .count = move_extent(&moves.at[0])};
    return true;
}

static void add_step(Lowering *lowering, ht_reshard_step step) { array_push(lowering->arena, &lowering->steps, step); }

static void add_moves(Lowering *lowering, ht_verb verb, const Moves *moves)
{
    if (moves->count)
        add_step(lowering, (ht_reshard_step){.verb = verb, .move_count = moves->count, .move = moves->at});
}

static void append_moves(Lowering *lowering, Moves *all, const Moves *moves)
{
    for (int i = 0; i < moves->count; i++)
        array_push(lowering->arena, all, moves->at[i]);
}

/* Segments packed in scratch, whatever their places; the moves go to `pack`. */
static ht_block pack_block(Lowering *lowering, const Segments *segments, Moves *pack)
{
    ht_block block = {.place = HT_SCRATCH, .count = volume_of_all(segments)};
    block.offset = take_scratch(lowering, block.count);
    Moves moves = packing_moves(lowering, segments, block.offset, false);
    append_moves(lowering, pack, &moves);
    return block;
}

/* Segments to send: where they lie, or packed. */
static ht_block send_block(Lowering *lowering, const Segments *segments, Moves *pack)
{
    ht_block block = {0};
    return find_block(lowering, segments, false, &block) ? block : pack_block(lowering, segments, pack);
}

/* The moves that bring received segments from scratch to where the target stores them. */
static void unpack_block(Lowering *lowering, const Segments *segments, int64_t offset, Moves *unpack)
{
    for (int i = 0; i < segments->count; i++) {
        move_segment(lowering, unpack, &segments->at[i], packed_at(offset), stored_at(HT_TO));
        offset += volume_of(&segments->at[i]);
    }
}

/* Segments to receive: where the target stores them, or in scratch, to be unpacked. */
static ht_block receive_block(Lowering *lowering, const Segments *segments, Moves *unpack)
{
    ht_block block = {.place = HT_SCRATCH, .count = volume_of_all(segments)};
    if (!block.count || find_block(lowering, segments, true, &block))
        return block;
    block.offset = take_scratch(lowering, block.count);
    unpack_block(lowering, segments, block.offset, unpack);
    return block;
}

/* ---- collectives ---- */

static ht_reshard_step collective(const Lowering *lowering, const Step *step)
{
    (void)lowering;
    return (ht_reshard_step){.verb = step->verb, .group = step->group_index};
}

static const ht_block *keep_block(Lowering *lowering, ht_block block) { return arena_copy(lowering->arena, &block, sizeof block); }

static void lower_all_reduce(Lowering *lowering, const Step *step)
{
    Moves pack = {0}, unpack = {0};
    ht_reshard_step lowered = collective(lowering, step);
    ht_block send = send_block(lowering, &step->parts[0], &pack), receive = {0};
    if (!find_block(lowering, &step->parts[0], true, &receive)) {
        receive = send.place == HT_SCRATCH
                      ? send
                      : (ht_block){.place = HT_SCRATCH, .offset = take_scratch(lowering, send.count), .count = send.count};
        unpack_block(lowering, &step->parts[0], receive.offset, &unpack);
    }
    lowered.send_count = lowered.receive_count = 1;
    lowered.send = keep_block(lowering, send);
    lowered.receive = keep_block(lowering, receive);
    add_moves(lowering, HT_COPY, &pack);
    add_step(lowering, lowered);
    add_moves(lowering, HT_COPY, &unpack);
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
        first.count = volume_of_all(&step->parts[i]);
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
    consecutive_blocks(lowering, step, send_block(lowering, &all, &pack), &send);
    ht_reshard_step lowered = collective(lowering, step);
    lowered.send = send.at;
    lowered.send_count = step->verb == HT_REDUCE ? 1 : send.count;
    if (step->verb == HT_REDUCE_SCATTER || !position) {
        lowered.receive = keep_block(lowering, receive_block(lowering, &step->parts[position], &unpack));
        lowered.receive_count = 1;
    }
    add_moves(lowering, HT_COPY, &pack);
    add_step(lowering, lowered);
    add_moves(lowering, HT_COPY, &unpack);
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
    return true;
}

static void lower_all_gather(Lowering *lowering, const Step *step, int position)
{
    Moves pack = {0}, unpack = {0};
    Blocks receive = {0};
    ht_reshard_step lowered = collective(lowering, step);
    ht_block send = {.place = HT_SCRATCH};
    if (step->parts[position].count)
        send = send_block(lowering, &step->parts[position], &pack);
    if (!gather_in_place(lowering, step, &receive)) {
        Segments all = all_parts(lowering, step);
        receive.count = 0;
        consecutive_blocks(lowering, step, (ht_block){.place = HT_SCRATCH, .offset = take_scratch(lowering, volume_of_all(&all))},
                           &receive);
        unpack_block(lowering, &all, receive.at[0].offset, &unpack);
    }
    lowered.send = keep_block(lowering, send);
    lowered.send_count = 1;
    lowered.receive = receive.at;
    lowered.receive_count = receive.count;
    add_moves(lowering, HT_COPY, &pack);
    add_step(lowering, lowered);
    add_moves(lowering, HT_COPY, &unpack);
}

static void lower_broadcast(Lowering *lowering, const Step *step, int position)
{
    Moves pack = {0}, unpack = {0};
    ht_reshard_step lowered = collective(lowering, step);
    if (!position) {
        lowered.send = keep_block(lowering, send_block(lowering, &step->parts[0], &pack));
        lowered.send_count = 1;
    } else {
        lowered.receive = keep_block(lowering, receive_block(lowering, &step->parts[0], &unpack));
        lowered.receive_count = 1;
    }
    add_moves(lowering, HT_COPY, &pack);
    add_step(lowering, lowered);
    add_moves(lowering, HT_COPY, &unpack);
}

/* ---- all-to-all ---- */

static const Message *find_message(const Step *step, int sender, int receiver)
{
    for (int i = 0; i < step->messages.count; i++)
        if (step->messages.at[i].sender == sender && step->messages.at[i].receiver == receiver)
            return &step->messages.at[i];
    return NULL;
}

/* The blocks to or from all members when all lie in `place`; false when one does not. */
static bool direct_blocks(Lowering *lowering, const Step *step, bool received, Blocks *blocks)
{
    ht_place place = HT_SCRATCH;
    for (int i = 0; i < step->group.count; i++) {
        int other = step->group.at[i];
        const Message *message = received ? find_message(step, other, lowering->device) : find_message(step, lowering->device, other);
        ht_block block = {.place = place, .peer = other};
        if (message && !find_block(lowering, &message->segments, received, &block))
            return false;
        if (message && place != HT_SCRATCH && block.place != place)
            return false;
        place = message ? block.place : place;
        array_push(lowering->arena, blocks, block);
    }
    for (int i = 0; i < blocks->count; i++)
        blocks->at[i].place = place;
    return true;
}

static void packed_blocks(Lowering *lowering, const Step *step, bool received, Blocks *blocks, Moves *moves)
{
    blocks->count = 0;
    for (int i = 0; i < step->group.count; i++) {
        int other = step->group.at[i];
        const Message *message = received ? find_message(step, other, lowering->device) : find_message(step, lowering->device, other);
        ht_block block = {.place = HT_SCRATCH, .offset = lowering->base + lowering->used};
        if (message && !received)
            block = pack_block(lowering, &message->segments, moves);
        else if (message) {
            block.count = message->volume;
            block.offset = take_scratch(lowering, block.count);
            unpack_block(lowering, &message->segments, block.offset, moves);
        }
        block.peer = other;
        array_push(lowering->arena, blocks, block);
    }
}

static void lower_all_to_all(Lowering *lowering, const Step *step)
{
    Moves pack = {0}, unpack = {0};
    Blocks send = {0}, receive = {0};
    ht_reshard_step lowered = collective(lowering, step);
    if (!direct_blocks(lowering, step, false, &send))
        packed_blocks(lowering, step, false, &send, &pack);
    if (!direct_blocks(lowering, step, true, &receive))
        packed_blocks(lowering, step, true, &receive, &unpack);
    lowered.send = send.at;
    lowered.send_count = send.count;
    lowered.receive = receive.at;
    lowered.receive_count = receive.count;
    add_moves(lowering, HT_COPY, &pack);
    add_step(lowering, lowered);
    add_moves(lowering, HT_COPY, &unpack);
}

/* ---- messages ---- */

/* A contribution to a reduction: which, the part that it covers, and where it lies. */
typedef struct Contribution {
    Segment segment;
    Where where;
} Contribution;

typedef Array(Contribution) Contributions;

static int compare_contributions(const void *a, const void *b)
{
    const Contribution *x = a, *y = b;
    if (x->segment.source != y->segment.source)
        return x->segment.source - y->segment.source;
    return (x->segment.lo > y->segment.lo) - (x->segment.lo < y->segment.lo);
}

/* The contribution that the device itself holds; none when it holds no part of the bundle. */
static void add_own(Lowering *lowering, const Segment *segment, Contributions *contributions)
{
    const Task *task = &lowering->plan->tasks.at[segment->task];
    for (int p = 0; p < task->source_count; p++)
        if (devices_find(&task->sources[p], lowering->device) >= 0) {
            Contribution own = {*segment, stored_at(HT_FROM)};
            own.segment.source = p;
            array_push(lowering->arena, contributions, own);
            return;
        }
}

/* A contribution's part [lo, hi), moved to where the reduction is stored. */
static void move_part(Lowering *lowering, Moves *moves, const Contribution *contribution, int64_t lo, int64_t hi, const Segment *target,
                      Where to)
{
    Segment part = contribution->segment;
    Where from = contribution->where;
    from.offset += lo - part.lo;
    to.offset += lo - target->lo;
    part.lo = lo;
    part.hi = hi;
    move_segment(lowering, moves, &part, from, to);
}

/* Reduces the contributions in the order of their numbers: for each stretch on which they are the same, the first is copied and the others
 * are combined. */
static void reduce(Lowering *lowering, const Contributions *contributions, const Segment *target, Where to, Moves *copies, Moves *combines)
{
    if (contributions->count)
        qsort(contributions->at, (size_t)contributions->count, sizeof *contributions->at, compare_contributions);
    for (int64_t lo = target->lo, hi; lo < target->hi; lo = hi) {
        hi = target->hi;
        for (int i = 0; i < contributions->count; i++) {
            const Segment *segment = &contributions->at[i].segment;
            hi = segment->lo > lo && segment->lo < hi ? segment->lo : hi;
            hi = segment->hi > lo && segment->hi < hi ? segment->hi : hi;
        }
        bool first = true;
        for (int i = 0; i < contributions->count; i++) {
            const Contribution *contribution = &contributions->at[i];
            if (contribution->segment.lo > lo || contribution->segment.hi < hi)
                continue;
            move_part(lowering, first ? copies : combines, contribution, lo, hi, target, to);
            first = false;
        }
    }
}

/* What the device received for a reduction in this step; `offsets` has where each message lies in scratch. */
static void add_received(Lowering *lowering, const Step *step, const Segment *target, const int64_t *offsets, Contributions *contributions)
{
    for (int i = 0, k = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        if (message->receiver != lowering->device)
            continue;
        int64_t offset = offsets[k++];
        for (int s = 0; s < message->segments.count; s++) {
            const Segment *segment = &message->segments.at[s];
            if (segment->task == target->task && segment->lo < target->hi && target->lo < segment->hi)
                array_push(lowering->arena, contributions, (Contribution){*segment, packed_at(offset)});
            offset += volume_of(segment);
        }
    }
}

static int64_t kept_offset(const Lowering *lowering, const Segment *segment)
{
    for (int k = 0; k < lowering->kept.count; k++)
        if (lowering->kept.at[k].segment.task == segment->task && lowering->kept.at[k].segment.lo == segment->lo)
            return lowering->kept.at[k].offset;
    BUG("no room was kept for a reduction");
}

static void reduce_all(Lowering *lowering, const Step *step, const int64_t *offsets)
{
    Moves copies = {0}, combines = {0};
    for (int r = 0; r < step->reductions.count; r++) {
        const Reducing *reduction = &step->reductions.at[r];
        if (reduction->device != lowering->device)
            continue;
        Contributions contributions = {0};
        add_own(lowering, &reduction->segment, &contributions);
        add_received(lowering, step, &reduction->segment, offsets, &contributions);
        Where to = reduction->partial ? packed_at(kept_offset(lowering, &reduction->segment)) : stored_at(HT_TO);
        reduce(lowering, &contributions, &reduction->segment, to, &copies, &combines);
    }
    add_moves(lowering, HT_COPY, &copies);
    add_moves(lowering, HT_COMBINE, &combines);
}

static void lower_exchange(Lowering *lowering, const Step *step)
{
    Moves pack = {0}, unpack = {0};
    Blocks send = {0}, receive = {0};
    int64_t *offsets = arena_array(lowering->arena, int64_t, step->messages.count);
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        if (message->sender == lowering->device) {
            ht_block block = send_block(lowering, &message->segments, &pack);
            block.peer = message->receiver;
            array_push(lowering->arena, &send, block);
        } else if (message->receiver == lowering->device) {
            ht_block block = {.place = HT_SCRATCH, .count = message->volume};
            if (step->combine)
                offsets[receive.count] = block.offset = take_scratch(lowering, block.count);
            else
                block = receive_block(lowering, &message->segments, &unpack);
            block.peer = message->sender;
            array_push(lowering->arena, &receive, block);
        }
    }
    add_moves(lowering, HT_COPY, &pack);
    if (send.count || receive.count)
        add_step(
            lowering,
            (ht_reshard_step){
                .verb = HT_EXCHANGE, .send_count = send.count, .receive_count = receive.count, .send = send.at, .receive = receive.at});
    add_moves(lowering, HT_COPY, &unpack);
    if (step->combine)
        reduce_all(lowering, step, offsets);
}

/* ---- the device's own part ---- */

/* Whether an all-gather brings the device its own piece of a task, too. */
static bool is_gathered(const Lowering *lowering, int task)
{
    for (int s = 0; s < lowering->plan->steps.count; s++) {
        const Step *step = &lowering->plan->steps.at[s];
        int position = step->verb == HT_ALL_GATHER ? devices_find(&step->group, lowering->device) : -1;
        for (int k = 0; position >= 0 && k < step->parts[position].count; k++)
            if (step->parts[position].at[k].task == task && step->parts[position].at[k].origin == ORIGIN_FROM)
                return true;
    }
    return false;
}

/* What the device keeps of what it has, and the identities that it fills in. */
static void lower_local(Lowering *lowering)
{
    Moves copies = {0}, fills = {0};
    for (int t = 0; t < lowering->plan->tasks.count; t++) {
        const Task *task = &lowering->plan->tasks.at[t];
        if (task->source_count > 1 || devices_find(&task->wanted, lowering->device) < 0)
            continue;
        Segment all = {.task = t, .hi = task->volume};
        if (!task->source_count)
            move_segment(lowering, &fills, &all, stored_at(HT_TO), stored_at(HT_TO));
        else if (devices_find(&task->sources[0], lowering->device) >= 0 && !is_gathered(lowering, t))
            move_segment(lowering, &copies, &all, stored_at(HT_FROM), stored_at(HT_TO));
    }
    add_moves(lowering, HT_COPY, &copies);
    add_moves(lowering, HT_FILL, &fills);
}

/* Room for the reductions that stay in scratch between steps. */
static void keep_partials(Lowering *lowering)
{
    for (int s = 0; s < lowering->plan->steps.count; s++)
        for (int r = 0; r < lowering->plan->steps.at[s].reductions.count; r++) {
            const Reducing *reduction = &lowering->plan->steps.at[s].reductions.at[r];
            if (!reduction->partial || reduction->device != lowering->device)
                continue;
            Kept kept = {reduction->segment, take_scratch(lowering, volume_of(&reduction->segment))};
            array_push(lowering->arena, &lowering->kept, kept);
        }
    lowering->base = lowering->used;
}

static void lower_step(Lowering *lowering, const Step *step)
{
    int position = step->group.count ? devices_find(&step->group, lowering->device) : 0;
    lowering->used = 0;
    if (position < 0)
        return;
    switch (step->verb) {
    case HT_ALL_REDUCE: lower_all_reduce(lowering, step); break;
    case HT_REDUCE_SCATTER:
    case HT_REDUCE: lower_reduce_scatter(lowering, step, position); break;
    case HT_ALL_GATHER: lower_all_gather(lowering, step, position); break;
    case HT_BROADCAST: lower_broadcast(lowering, step, position); break;
    case HT_ALL_TO_ALL: lower_all_to_all(lowering, step); break;
    case HT_EXCHANGE: lower_exchange(lowering, step); break;
    default: BUG("a step of a plan is no communication");
    }
}

const ht_reshard_device *plan_device(const Plan *plan, int device)
{
    int slot = plan_slot(plan, device);
    if (slot < 0) {
        ht_reshard_device *none = arena_new(plan->arena, ht_reshard_device);
        none->device = device;
        return none;
    }
    if (plan->lowered[slot])
        return plan->lowered[slot];
    Lowering lowering = {.plan = plan, .arena = plan->arena, .device = device};
    for (int side = 0; side < 2; side++)
        lowering.piece[side] = cells_piece_of(plan->cells, side, device);
    lower_local(&lowering);
    keep_partials(&lowering);
    for (int s = 0; s < plan->steps.count; s++)
        lower_step(&lowering, &plan->steps.at[s]);
    ht_reshard_device *lowered = arena_new(plan->arena, ht_reshard_device);
    *lowered = (ht_reshard_device){.device = device, .step_count = lowering.steps.count, .step = lowering.steps.at};
    lowered->scratch = ((lowering.base + lowering.most) * plan->element + 63) / 64 * 64;
    return plan->lowered[slot] = lowered;
}

int64_t plan_scratch_bytes(const Plan *plan, int device) { return plan_device(plan, device)->scratch; }

const ht_reshard *plan_lowered(Arena *arena, const Plan *plan, ht_dtype dtype, const char *name)
{
    ht_reshard *lowered = arena_new(arena, ht_reshard);
    ht_reshard_device *devices = arena_array(arena, ht_reshard_device, plan->device_count);
    for (int i = 0; i < plan->device_count; i++)
        devices[i] = *plan_device(plan, plan->devices[i]);
    *lowered = (ht_reshard){.name = name,
                            .dtype = dtype,
                            .reduction = plan->reduction,
                            .in_place = plan->in_place,
                            .group_count = plan->groups.count,
                            .device_count = plan->device_count,
                            .group = plan->groups.at,
                            .device = devices};
    return lowered;
}
