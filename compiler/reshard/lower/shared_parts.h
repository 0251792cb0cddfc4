/* All parts of a collective as one list: its moves are made once for all devices that store alike,
 * so that lowering a group grows with the group, not with its square. */
#ifndef RESHARD_LOWER_SHARED_PARTS_H
#define RESHARD_LOWER_SHARED_PARTS_H

#include "reshard/lower/lower.h"

/* What moves do with segments: from where they are sent to scratch; the same from where they
 * belong; from scratch to where they belong. */
typedef enum Way { WAY_PACK, WAY_FIND, WAY_UNPACK } Way;

/* All parts of a step, one after another, until the next step is lowered. */
const Segments *whole_of(Lowering *lowering, const Step *step);

/* The place of the moves of a list from an offset of scratch on, empty where they are not made
 * yet; they are then the plan's. NULL: the list is none of whole_of, or has parts that are in
 * scratch. */
MoveList *whole_moves(Lowering *lowering, const Segments *segments, int64_t offset, Way way);

#endif
