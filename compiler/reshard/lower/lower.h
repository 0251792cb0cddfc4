/* What the parts of lowering share: one device's steps while they are made.
 *
 * Pieces that are contiguous in a tensor's storage are sent from there and received there; others
 * are packed in scratch. Scratch begins with the reductions that are not complete and are needed
 * later; behind it each step has its own packing space.
 */
#ifndef RESHARD_LOWER_H
#define RESHARD_LOWER_H

#include "reshard/lower/device_steps.h"
#include "reshard/plan_builder.h"

/* Where the elements of segments lie: in the device's storage, or packed in scratch from an offset
 * in bytes on. */
typedef struct Where {
    ht_place place;
    bool packed;
    int64_t offset; // packed: of the first element
} Where;

/* A list of moves; `shared`: it is the plan's, for all devices that have it. */
typedef struct MoveList {
    ht_move *at;
    int count, capacity;
    bool shared;
} MoveList;

typedef Array(ht_block) Blocks;

/* A reduction that lies in scratch, by the task, origin and place of its segment. */
typedef struct Resident {
    Segment segment;
    int64_t offset; // bytes
} Resident;

typedef struct Lowering {
    const Plan *plan;
    Arena *arena;
    int device;
    const DeviceSteps *device_steps;
    // by Side, by bucket; NULL: the device stands nowhere in that layout
    const Holding **holding[2];
    const struct SharedParts
        *shared_parts; // of the step (lower/shared_parts.h); NULL: it was not asked for
    ht_dtype dtype;    // of the step's blocks
    int unit;          // its bytes
    Array(ht_reshard_step) steps;
    Array(Resident) residents;
    int64_t base, used, most; // bytes of scratch: where a step's space begins, what it has used,
                              // and the most of all steps
} Lowering;

/* Returns the places of segments. */
Where stored_at(ht_place place);
Where packed_at(int64_t offset);

/* Returns where the device has a segment that it sends, and where it puts one that is complete. */
Where origin_of(const Lowering *lowering, const Segment *segment);
Where result_of(const Lowering *lowering, const Segment *segment);

/* Returns a segment as it is sent from scratch: one that is complete, or a `partial` one. */
Segment resident_segment(const Plan *plan, Segment segment, bool partial);

/* Returns the space in scratch for a step; on 64-byte borders. */
int64_t take_scratch(Lowering *lowering, int64_t bytes);

/* Appends the moves of a segment. Packed offsets are those of the segment's first element. */
void move_segment(Lowering *lowering, MoveList *moves, const Segment *segment, Where from,
                  Where to);

/* Returns whether segments lie one after another in one buffer, from where they are sent or,
 * when `received`, where they belong: then that is the block. */
bool find_block(Lowering *lowering, const Segments *segments, bool received, ht_block *block);

/* Segments to send: where they lie, or packed in scratch by moves that go to `pack`. */
ht_block send_block(Lowering *lowering, const Segments *segments, MoveList *pack);
ht_block pack_block(Lowering *lowering, const Segments *segments, MoveList *pack);

/* Segments to receive: where they belong, or in scratch, from which moves that go to `unpack` bring
 * them there. */
ht_block receive_block(Lowering *lowering, const Segments *segments, MoveList *unpack);
void unpack_block(Lowering *lowering, const Segments *segments, int64_t offset, MoveList *unpack);

/* Returns a block of scratch. */
ht_block scratch_block(const Lowering *lowering, int64_t offset, int64_t bytes);

/* Returns the plan's one copy of a list of moves or blocks: devices that do the same have the
 * same, and hold what they do in the same memory. */
const ht_move *share_moves(Lowering *lowering, const ht_move *moves, int count);
const ht_block *share_blocks(Lowering *lowering, const ht_block *blocks, int count);

/* Appends a step, whose lists are the plan's; one of moves alone only when there are any. */
void add_lowered(Lowering *lowering, ht_reshard_step step);
void add_moves(Lowering *lowering, ht_verb verb, const MoveList *moves);

/* The steps of an exchange, and those of a collective. */
void lower_exchange(Lowering *lowering, const Step *step, const StepPlace *step_place);
void lower_collective(Lowering *lowering, const Step *step, const StepPlace *step_place);

/* All parts of a collective as one list: its moves are made once for all devices that store alike,
 * so that lowering a group grows with the group, not with its square. */

/* What moves do with segments: from where they are sent to scratch; the same from where they
 * belong; from scratch to where they belong. */
typedef enum Way { WAY_PACK, WAY_FIND, WAY_UNPACK } Way;

/* Returns all parts of a step, one after another, until the next step is lowered. */
const Segments *shared_parts(Lowering *lowering, const Step *step);

/* Returns the place of the moves of a list from an offset of scratch on, empty where they are
 * not made yet; they are then the plan's. NULL: the list is none of shared_parts, or has parts
 * that are in scratch. */
MoveList *shared_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way);

#endif
