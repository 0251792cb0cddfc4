/* Pieces of a dimension that a state of a layout cuts, even ones and those of a zigzag split.
 *
 *     even, 4 positions      | 0 | 1 | 2 | 3 |
 *     zigzag, 4 positions    |0|1|2|3|3|2|1|0|    an early and a late piece for each position
 *
 * Under a causal mask late queries see more keys than early ones. With zigzag pieces of queries and
 * keys, all devices of ring attention have about the same work (load-balanced context parallelism).
 */
#ifndef LAYOUT_ZIGZAG_H
#define LAYOUT_ZIGZAG_H

#include "layout/layout.h"

#include "layout/fraction.h"
#include "support/array.h"

/* An interval of a dimension, as fractions of the whole. */
typedef struct Interval {
    Fraction lo, hi;
} Interval;

/* Intervals of a dimension, in ascending order; a cut treats them as if they were contiguous. */
typedef Array(Interval) Intervals;

/* Returns the place where piece `k` of `count` begins; k = count: the end of the last piece.
 * `before`: prefix sums of the weights; NULL: equal pieces. */
Fraction cut_at(const int64_t *before, int count, int k);

/* Return the number and the weights (NULL: equal) of the pieces into which a state cuts. A zigzag
 * state has two pieces for each position, the second half in reverse order. */
int piece_count(const State *state);
const int64_t *piece_weights(Arena *arena, const State *state);

/* Replaces `parts` by those of position k of a state. `before`: prefix sums of piece_weights. */
void cut_intervals(Arena *arena, Intervals *parts, const State *state, const int64_t *before,
                   int k);

#endif
