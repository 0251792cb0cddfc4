/* The pieces into which a state of a layout cuts a dimension: even, or those of a zigzag split.
 *
 *     even, 4 positions      | 0 | 1 | 2 | 3 |
 *     zigzag, 4 positions    |0|1|2|3|3|2|1|0|    an early and a late piece for each position
 *
 * Under a causal mask late queries see more keys than early ones. With zigzag pieces of queries and
 * keys, all devices of ring attention have about the same work (load-balanced context parallelism).
 */
#pragma once

#include "layout/layout.h"
#include "support/array.h"

#include <stdint.h>

/* ---- fractions (fraction.c) ---- */

/* Exact fractions: the places of cuts in the interval [0, 1].
 *
 * A dimension of 10 cut by 3: pieces [0, 3), [3, 6), [6, 10), since 10/3 is rounded down. */

typedef struct Fraction {
    int64_t num, den; // in lowest terms, den > 0
} Fraction;

static const Fraction FRACTION_ZERO = {0, 1}, FRACTION_ONE = {1, 1};

/* Returns num / den in lowest terms. */
Fraction fraction_make(__int128 num, __int128 den);

/* Returns a + (b - a) * t: a for t = 0, b for t = 1. */
Fraction fraction_between(Fraction a, Fraction b, Fraction t);

/* Return a + b, and a - b for b <= a. */
Fraction fraction_add(Fraction a, Fraction b);
Fraction fraction_subtract(Fraction a, Fraction b);

/* Returns a negative number if a < b, zero if a = b, a positive number if a > b. */
int fraction_compare(Fraction a, Fraction b);

/* Returns floor(n * a). */
int64_t fraction_floor(Fraction a, int64_t n);

/* ---- pieces (zigzag.c) ---- */

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

/* Cuts `parts` by a state and keeps position k's pieces. `before`: prefix sums of piece_weights. */
void cut_intervals(Arena *arena, Intervals *parts, const State *state, const int64_t *before,
                   int k);
