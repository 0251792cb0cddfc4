/* Lowering: turns a plan into the tables of one device (<hetu/reshard.h>). Shared by lower/.
 *
 * Segments that are contiguous in a tensor's storage are sent from and received into it; all other
 * segments are packed in scratch. Scratch begins with partial reductions that later steps need; the
 * packing space of each step begins after them.
 *
 *     all-gather of columns: HT_COPY pack -> HT_ALL_GATHER in scratch -> HT_COPY unpack
 */
#pragma once

#include "reshard/plan_builder.h"
#include "reshard/plan.h"

/* ---- the steps and tasks of each device: lowering a device visits no other steps ---- */

/* A step in which a device takes part. */
typedef struct StepPlace {
    int step, position;    // position in the step's group; -1: not in it; 0: the step has no group
    Array(int) messages;   // indices of the messages that the device sends or receives, ascending
    Array(int) reductions; // indices of the device's reductions
} StepPlace;

/* A copy or fill with the device as a target; `holder`: the device also holds the source. */
typedef struct TaskPlace {
    int task;
    bool holder;
} TaskPlace;

/* The steps and tasks of one device, in the plan's order. */
typedef struct DeviceSteps {
    Array(StepPlace) steps;
    Array(TaskPlace) tasks;
} DeviceSteps;

/* Returns the steps and tasks of the device at a slot. The first call finds them for every slot. */
const DeviceSteps *plan_device_steps(const Plan *plan, int slot);

/* The place of segments: the device's storage, or packed in scratch. */
typedef struct Where {
    ht_place place;
    bool packed;
    int64_t offset; // if `packed`: offset of the first element in scratch, in bytes
} Where;

/* A list of moves; `shared` lists belong to the plan and are used by several devices. */
typedef struct MoveList {
    ht_move *at;
    int count, capacity;
    bool shared;
} MoveList;

typedef Array(ht_block) Blocks;

/* A segment whose partial reduction is kept in scratch for later steps. */
typedef struct Resident {
    Segment segment;
    int64_t offset; // offset in scratch, in bytes
} Resident;

typedef struct Lowering {
    const Plan *plan;
    Arena *arena;
    int device;
    const DeviceSteps *device_steps;
    // by Side and bucket: the device's holding; NULL: the device is not in that layout
    const Holding **holding[2];
    const struct SharedParts *shared_parts; // parts of the current step; NULL: not computed yet
    ht_dtype dtype;                         // element type of the step's blocks
    int unit;                               // bytes of an element of that type
    Array(ht_reshard_step) steps;
    Array(Resident) residents;
    int64_t base, used, most; // in bytes: offset of the steps' packing space in scratch, size that
                              // the current step uses, and largest size of a step
} Lowering;

/* Return a place in storage, and a packed place in scratch from an offset (in bytes) on. */
Where stored_at(ht_place place);
Where packed_at(int64_t offset);

/* Return the place of a segment that the device sends, and the place where a result is stored. */
Where origin_of(const Lowering *lowering, const Segment *segment);
Where result_of(const Lowering *lowering, const Segment *segment);

/* Returns a segment as stored in scratch: a partial reduction, or a local task's contribution. */
Segment resident_segment(const Plan *plan, Segment segment, bool partial);

/* Reserves scratch for the current step, aligned to 64 bytes. Returns the offset in bytes. */
int64_t take_scratch(Lowering *lowering, int64_t bytes);

/* Appends the moves that copy a segment. A packed place is that of the segment's first element. */
void move_segment(Lowering *lowering, MoveList *moves, const Segment *segment, Where from,
                  Where to);

/* Returns whether segments are contiguous in one buffer: at their origins or, if `received`, at the
 * places where results are stored. If so, writes the block. */
bool find_block(Lowering *lowering, const Segments *segments, bool received, ht_block *block);

/* Return the block of segments to send. pack_block packs them in scratch by moves appended to
 * `pack`; send_block does so unless they are contiguous in storage. */
ht_block send_block(Lowering *lowering, const Segments *segments, MoveList *pack);
ht_block pack_block(Lowering *lowering, const Segments *segments, MoveList *pack);

/* receive_block returns the block in which segments arrive: storage if they are contiguous in it,
 * else scratch. unpack_block appends the moves from scratch, at an offset in bytes, to storage. */
ht_block receive_block(Lowering *lowering, const Segments *segments, MoveList *unpack);
void unpack_block(Lowering *lowering, const Segments *segments, int64_t offset, MoveList *unpack);

/* Returns a block of scratch (offset and size in bytes), counted in the step's elements. */
ht_block scratch_block(const Lowering *lowering, int64_t offset, int64_t bytes);

/* Return the plan's only copy of a list of moves or blocks, so that equal lists share memory. */
const ht_move *share_moves(Lowering *lowering, const ht_move *moves, int count);
const ht_block *share_blocks(Lowering *lowering, const ht_block *blocks, int count);

/* Append a step whose lists belong to the plan, and a step of `moves` unless the list is empty. */
void add_lowered(Lowering *lowering, ht_reshard_step step);
void add_moves(Lowering *lowering, ht_verb verb, const MoveList *moves);

/* Append the steps of an exchange, and those of a collective. */
void lower_exchange(Lowering *lowering, const Step *step, const StepPlace *step_place);
void lower_collective(Lowering *lowering, const Step *step, const StepPlace *step_place);

/* ---- shared parts (shared_parts.c): a collective's parts of all devices, as one list ---- */

/* The purpose of moves of segments: pack them from their origins into scratch, find the places
 * where results are stored, or unpack them from scratch to these places. */
typedef enum Way { WAY_PACK, WAY_FIND, WAY_UNPACK } Way;

/* Returns the parts of all devices in a step, in the group's order, as one list of the plan. */
const Segments *shared_parts(Lowering *lowering, const Step *step);

/* Returns the shared list of moves of segments from an offset of scratch on; a new list is empty.
 * Returns NULL if the segments are not those of shared_parts, or if some are in scratch. */
MoveList *shared_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way);
