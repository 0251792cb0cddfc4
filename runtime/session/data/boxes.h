/* Moves elements of distributed tensors between ranks: for feeds, fetches, parameters, and changes
 * of layout between programs.
 *
 * A rank's piece (a list of boxes) is converted to stretches: ranges of the tensor's row-major
 * element numbers that are contiguous in the piece's storage. Element numbers do not depend on the
 * shape, so a tensor can move between shapes. If several ranks hold an element, the first sends it.
 *
 * Example: columns 0 and 1 of a (2, 4) tensor are the stretches {0, 2, at 0} and {4, 6, at 2}. */
#pragma once

#include <hetu/image.h>

#include <stddef.h>

/* Elements [lo, hi) of the whole tensor, stored from element `at` of the piece's storage. */
typedef struct Stretch {
    int64_t lo, hi, at;
} Stretch;
typedef struct Stretches {
    int64_t count;
    Stretch *stretch; // ascending
} Stretches;

/* Return the index of a rank's first box, and of its last box plus 1; equal if it has no box. */
int boxes_first(const ht_pieces *pieces, int rank);
int boxes_end(const ht_pieces *pieces, int rank);

/* Sets `bounds` to lo and hi of each dimension of a box: lo0, hi0, lo1, hi1, ... */
void boxes_bounds(const ht_pieces *pieces, int box, int64_t *bounds);
enum { PIECES_MOST_BOUNDS = 64 };

/* Returns the stretches of a rank's piece; free() their array. */
Stretches boxes_stretches(const ht_pieces *pieces, int rank);

/* Return the number of elements of the whole tensor, and of a rank's piece. */
int64_t boxes_elements(const ht_pieces *pieces);
int64_t boxes_count(const ht_pieces *pieces, int rank);

/* Returns whether two layouts give every rank the same elements in the same order. Compares the
 * tables, whose pieces must be numbered in the order of ranks. */
bool boxes_equal(const ht_pieces *a, const ht_pieces *b);

/* Copies a rank's piece between its storage and a packed buffer of its boxes, one after another,
 * each row-major. `packs`: into the buffer, else out of it. */
void boxes_pack(const ht_pieces *pieces, int rank, float *storage, float *packed, bool packs);

/* Where a tensor's elements are: in device memory by `pieces`; in host memory if `pieces` is NULL.
 * In host memory, rank r has elements [bounds[r], bounds[r + 1]); `bounds` NULL: rank 0 has all. */
typedef struct Distribution {
    const ht_pieces *pieces;
    int64_t elements;
    int ranks;
    const int64_t *bounds;
} Distribution;

/* Copies a tensor of `element` bytes an element from one distribution to another, including every
 * replica. All ranks call it together; `source` and `target` are this rank's storage. */
void boxes_move(Distribution from, const void *source, Distribution to, void *target,
                size_t element);

/* Compares the replicas of every element bit by bit. Returns the first rank that differs from an
 * earlier holder; -1: none. The result is the same on all ranks. */
int boxes_differ(Distribution where, const void *data, size_t element);
