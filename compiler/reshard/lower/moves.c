/* Lowers segments to moves and blocks: their places in storage and in scratch. */
#include "reshard/lower/lower.h"

#include <string.h>

enum { SCRATCH_BORDER = 64 }; // alignment of scratch in bytes
enum { LEAST_FOLDED = 3 };    // the fewest moves that are folded into one

Where stored_at(ht_place place) { return (Where){.place = place}; }

Where packed_at(int64_t offset) {
    return (Where){.place = HT_SCRATCH, .packed = true, .offset = offset};
}

/* ---- moves ---- */

/* Merges dimensions that are contiguous on both sides, drops extents of 1. Returns the new rank. */
static int merge_dimensions(ht_stride *dim, int rank) {
    int kept = 0;
    for (int d = 0; d < rank; d++) {
        if (dim[d].extent == 1) continue;
        ht_stride *last = kept ? &dim[kept - 1] : NULL;
        if (last && last->from == dim[d].from * dim[d].extent &&
            last->to == dim[d].to * dim[d].extent)
            *last = (ht_stride){last->extent * dim[d].extent, dim[d].from, dim[d].to};
        else dim[kept++] = dim[d];
    }
    return kept;
}

static bool is_contiguous(const ht_move *move) {
    return !move->rank || (move->rank == 1 && move->dim[0].from == 1 && move->dim[0].to == 1);
}

static int64_t move_extent(const ht_move *move) { return move->rank ? move->dim[0].extent : 1; }

/* Appends a move, or extends the last move if the new one continues it. */
static void add_move(Lowering *lowering, MoveList *moves, ht_move move, const ht_stride *dim) {
    move.dim = dim;
    ht_move *last = moves->count ? &moves->at[moves->count - 1] : NULL;
    if (last && is_contiguous(last) && is_contiguous(&move) && last->tensor == move.tensor &&
        last->from == move.from && last->to == move.to) {
        int64_t extent = move_extent(last);
        if (last->from_offset + extent == move.from_offset &&
            last->to_offset + extent == move.to_offset) {
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

/* The part of a bundle in one tensor, which is moved. */
typedef struct MovePart {
    Lowering *lowering;
    MoveList *moves; // list to which its moves are appended
    const Bucket *bucket;
    int bucket_index, tensor;
    Where from, to;
} MovePart;

/* A cell of the common view: its first element and its extents. */
typedef struct Cell {
    int64_t corner[VIEW_MAX_RANK], extents[VIEW_MAX_RANK];
} Cell;

/* Returns the offset of a cell, in elements, in the device's storage or in scratch, and writes its
 * strides; `begin` is the cell's offset in the packed space. */
static int64_t cell_place(const MovePart *part, const Where *where, const Cell *cell, int64_t begin,
                          int64_t *strides) {
    const CommonView *view = &part->bucket->overlap->view;
    Side side = where->place == HT_TO ? SIDE_TO : SIDE_FROM;
    if (!where->packed)
        return view_storage(view, part->lowering->holding[side][part->bucket_index], cell->corner,
                            strides);
    int64_t step = 1;
    for (int f = view->rank - 1; f >= 0; f--) {
        strides[f] = step;
        step *= cell->extents[f];
    }
    return where->offset / part->bucket->element + begin;
}

/* Appends moves of elements [lo, hi) of a cell; packed, element 0 is, or would be, at `begin`. */
static void move_cell(const MovePart *part, const Cell *cell, int64_t lo, int64_t hi,
                      int64_t begin) {
    int rank = part->bucket->overlap->view.rank;
    int64_t from_strides[VIEW_MAX_RANK], to_strides[VIEW_MAX_RANK];
    int64_t from_at = cell_place(part, &part->from, cell, begin, from_strides),
            to_at = cell_place(part, &part->to, cell, begin, to_strides);
    BoxList boxes = range_boxes(part->lowering->arena, cell->extents, rank, lo, hi);
    for (int b = 0; b < boxes.count; b++) {
        ht_stride dim[VIEW_MAX_RANK];
        ht_move move = {.from = part->from.place,
                        .to = part->to.place,
                        .tensor = part->tensor,
                        .from_offset = from_at,
                        .to_offset = to_at};
        for (int f = 0; f < rank; f++) {
            Range range = boxes.ranges[b * rank + f];
            move.from_offset += range.lo * from_strides[f];
            move.to_offset += range.lo * to_strides[f];
            dim[f] = (ht_stride){range.hi - range.lo, from_strides[f], to_strides[f]};
        }
        move.rank = merge_dimensions(dim, rank);
        add_move(part->lowering, part->moves, move, dim);
    }
}

/* Appends moves of elements [lo, hi) of a bundle in one tensor; packed, element 0 is at `begin`. */
static void move_bundle(const MovePart *part, const Bundle *bundle, int64_t lo, int64_t hi,
                        int64_t begin) {
    Cell cell;
    for (int64_t c = 0, before = 0; c < bundle->cells.count && before < hi; c++) {
        int64_t volume =
            overlap_cell(part->bucket->overlap, bundle->cells.at[c], cell.corner, cell.extents);
        int64_t first = lo > before ? lo - before : 0,
                last = hi - before < volume ? hi - before : volume;
        if (first < last) move_cell(part, &cell, first, last, begin + before);
        before += volume;
    }
}

void move_segment(Lowering *lowering, MoveList *moves, const Segment *segment, Where from,
                  Where to) {
    const Task *task = &lowering->plan->tasks.at[segment->task];
    MovePart part = {.lowering = lowering,
                     .moves = moves,
                     .bucket = &lowering->plan->buckets.at[task->bucket],
                     .bucket_index = task->bucket,
                     .from = from,
                     .to = to};
    const Bundle *bundle = &part.bucket->overlap->bundles.at[task->bundle];
    for (int64_t k = segment->lo / bundle->volume; k * bundle->volume < segment->hi; k++) {
        int64_t before = k * bundle->volume, end = segment->hi - before;
        part.tensor = part.bucket->tensors[k];
        move_bundle(&part, bundle, segment->lo > before ? segment->lo - before : 0,
                    end < bundle->volume ? end : bundle->volume, before - segment->lo);
    }
}

Where origin_of(const Lowering *lowering, const Segment *segment) {
    if (segment->origin == ORIGIN_FROM || segment->origin == ORIGIN_TO)
        return stored_at(segment->origin == ORIGIN_FROM ? HT_FROM : HT_TO);
    for (int k = 0; k < lowering->residents.count; k++) {
        const Resident *resident = &lowering->residents.at[k];
        if (resident->segment.task == segment->task &&
            resident->segment.origin == segment->origin && resident->segment.lo <= segment->lo &&
            segment->hi <= resident->segment.hi)
            return packed_at(resident->offset + (segment->lo - resident->segment.lo) *
                                                    task_element(lowering->plan, segment->task));
    }
    BUG("device %d has no part of the reduction that it shall send", lowering->device);
}

Segment resident_segment(const Plan *plan, Segment segment, bool partial) {
    const Task *task = &plan->tasks.at[segment.task];
    segment.origin = partial ? ORIGIN_PARTIAL : ORIGIN_LOCAL;
    segment.task = partial || !task->local ? segment.task : task->whole;
    return segment;
}

Where result_of(const Lowering *lowering, const Segment *segment) {
    if (!lowering->plan->tasks.at[segment->task].local) return stored_at(HT_TO);
    Segment kept = resident_segment(lowering->plan, *segment, false);
    return origin_of(lowering, &kept);
}

/* ---- lists of moves ---- */

static bool same_dims(const ht_move *a, const ht_move *b) {
    return a->rank == b->rank &&
           (!a->rank || !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank));
}

/* Returns how many moves, from the first on, copy boxes of one shape at constant distances. */
static int progression(const ht_move *move, int count) {
    int same = 1;
    while (same < count && move[same].from == move->from && move[same].to == move->to &&
           move[same].tensor == move->tensor && same_dims(&move[same], move) &&
           move[same].from_offset - move[same - 1].from_offset ==
               move[1].from_offset - move->from_offset &&
           move[same].to_offset - move[same - 1].to_offset == move[1].to_offset - move->to_offset)
        same++;
    return same;
}

/* Returns the moves of a progression as one move with another dimension in front. */
static ht_move fold_progression(Lowering *lowering, const ht_move *move, int count) {
    ht_move folded = *move;
    ht_stride *dim = arena_array(lowering->arena, ht_stride, move->rank + 1);
    dim[0] = (ht_stride){count, move[1].from_offset - move->from_offset,
                         move[1].to_offset - move->to_offset};
    for (int d = 0; d < move->rank; d++) dim[d + 1] = move->dim[d];
    folded.dim = dim;
    folded.rank = merge_dimensions(dim, move->rank + 1);
    return folded;
}

/* Folds copies of boxes at constant distances into one move, not one for each device. */
static MoveList folded_copies(Lowering *lowering, MoveList moves) {
    for (int before = moves.count + 1; moves.count < before;) {
        before = moves.count;
        MoveList folded = {0};
        for (int i = 0, same; i < moves.count; i += same) {
            same = progression(moves.at + i, moves.count - i);
            bool regular = same >= LEAST_FOLDED && moves.at[i].rank < VIEW_MAX_RANK;
            same = regular ? same : 1;
            array_push(lowering->arena, &folded,
                       regular ? fold_progression(lowering, moves.at + i, same) : moves.at[i]);
        }
        moves = folded;
    }
    return moves;
}

/* ---- blocks ---- */

int64_t take_scratch(Lowering *lowering, int64_t bytes) {
    int64_t at = lowering->base + lowering->used;
    lowering->used += align_up(bytes, SCRATCH_BORDER);
    lowering->most = lowering->used > lowering->most ? lowering->used : lowering->most;
    return at;
}

ht_block scratch_block(const Lowering *lowering, int64_t offset, int64_t bytes) {
    return (ht_block){
        .place = HT_SCRATCH, .offset = offset / lowering->unit, .count = bytes / lowering->unit};
}

/* Returns the moves that pack segments into scratch: from origins or (`received`) result places. */
static MoveList make_packing(Lowering *lowering, const Segments *segments, int64_t offset,
                             bool received) {
    MoveList moves = {0};
    for (int i = 0; i < segments->count; i++) {
        move_segment(lowering, &moves, &segments->at[i],
                     (received ? result_of : origin_of)(lowering, &segments->at[i]),
                     packed_at(offset));
        offset += segment_bytes(lowering->plan, &segments->at[i]);
    }
    return moves;
}

/* Appends the moves that copy segments from scratch to the places where results are stored. */
static void add_unpacking(Lowering *lowering, const Segments *segments, int64_t offset,
                          MoveList *unpack) {
    for (int i = 0; i < segments->count; i++) {
        move_segment(lowering, unpack, &segments->at[i], packed_at(offset),
                     result_of(lowering, &segments->at[i]));
        offset += segment_bytes(lowering->plan, &segments->at[i]);
    }
}

static MoveList make_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way) {
    MoveList moves = {0};
    if (way == WAY_UNPACK) add_unpacking(lowering, segments, offset, &moves);
    else moves = make_packing(lowering, segments, offset, way == WAY_FIND);
    return moves;
}

/* Returns the moves of segments; those of shared parts are made once for equal storage. */
static MoveList moves_of(Lowering *lowering, const Segments *segments, int64_t offset, Way way) {
    MoveList *known = shared_moves(lowering, segments, offset, way);
    if (!known) return make_moves(lowering, segments, offset, way);
    if (!known->shared) {
        MoveList made = folded_copies(lowering, make_moves(lowering, segments, offset, way));
        *known = (MoveList){.count = made.count, .capacity = made.count, .shared = true};
        known->at = (ht_move *)share_moves(lowering, made.at, made.count);
    }
    return *known;
}

bool find_block(Lowering *lowering, const Segments *segments, bool received, ht_block *block) {
    MoveList moves = moves_of(lowering, segments, 0, received ? WAY_FIND : WAY_PACK);
    if (moves.count != 1 || !is_contiguous(&moves.at[0])) return false;
    int64_t size = task_element(lowering->plan, segments->at[0].task) / lowering->unit;
    *block = (ht_block){.place = moves.at[0].from,
                        .tensor = moves.at[0].tensor,
                        .offset = moves.at[0].from_offset * size,
                        .count = move_extent(&moves.at[0]) * size};
    return true;
}

void add_lowered(Lowering *lowering, ht_reshard_step step) {
    array_push(lowering->arena, &lowering->steps, step);
}

void add_moves(Lowering *lowering, ht_verb verb, const MoveList *moves) {
    if (!moves->count) return;
    MoveList list = moves->shared || verb == HT_COMBINE ? *moves : folded_copies(lowering, *moves);
    const ht_move *move = moves->shared ? moves->at : share_moves(lowering, list.at, list.count);
    add_lowered(lowering, (ht_reshard_step){.verb = verb, .move_count = list.count, .move = move});
}

/* Replaces a shared list of moves by a copy that may be changed. */
static void own_moves(Lowering *lowering, MoveList *moves) {
    if (moves->shared)
        moves->at =
            arena_copy(lowering->arena, moves->at, sizeof *moves->at * (size_t)moves->count);
    moves->shared = false;
}

static void append_moves(Lowering *lowering, MoveList *all, const MoveList *moves) {
    if (!all->count) {
        *all = *moves;
        return;
    }
    own_moves(lowering, all);
    for (int i = 0; i < moves->count; i++) array_push(lowering->arena, all, moves->at[i]);
}

ht_block pack_block(Lowering *lowering, const Segments *segments, MoveList *pack) {
    int64_t bytes = segments_bytes(lowering->plan, segments),
            offset = take_scratch(lowering, bytes);
    MoveList moves = moves_of(lowering, segments, offset, WAY_PACK);
    append_moves(lowering, pack, &moves);
    return scratch_block(lowering, offset, bytes);
}

ht_block send_block(Lowering *lowering, const Segments *segments, MoveList *pack) {
    ht_block block = {0};
    return find_block(lowering, segments, false, &block) ? block
                                                         : pack_block(lowering, segments, pack);
}

void unpack_block(Lowering *lowering, const Segments *segments, int64_t offset, MoveList *unpack) {
    if (!shared_moves(lowering, segments, offset, WAY_UNPACK)) {
        own_moves(lowering, unpack);
        add_unpacking(lowering, segments, offset, unpack);
        return;
    }
    MoveList moves = moves_of(lowering, segments, offset, WAY_UNPACK);
    append_moves(lowering, unpack, &moves);
}

ht_block receive_block(Lowering *lowering, const Segments *segments, MoveList *unpack) {
    ht_block block = {.place = HT_SCRATCH};
    int64_t bytes = segments_bytes(lowering->plan, segments);
    if (!bytes || find_block(lowering, segments, true, &block)) return block;
    block = scratch_block(lowering, take_scratch(lowering, bytes), bytes);
    unpack_block(lowering, segments, block.offset * lowering->unit, unpack);
    return block;
}
