/* Pieces of tensors on ranks, and moving elements between them: feeds, fetches, parameters in and
 * out, changes of layout between programs.
 *
 * A piece becomes a list of stretches: stretches of the whole tensor's row-major elements that lie
 * together in the piece's storage. So tensors that are seen in different shapes meet. Of the ranks
 * that hold an element, the first gives it away.
 */
#ifndef SESSION_DATA_BOXES_H
#define SESSION_DATA_BOXES_H

#include <hetu/rt.h>

/* Elements lo to before hi of the whole tensor lie at `at` of the storage. */
typedef struct Stretch {
    int64_t lo, hi, at;
} Stretch;
typedef struct Stretches {
    int64_t count;
    Stretch *stretch; // ascending
} Stretches;

/* The first of a rank's boxes, and the one behind the last. */
int boxes_first(const ht_pieces *pieces, int rank);
int boxes_end(const ht_pieces *pieces, int rank);

/* The numbers lo and hi of each dimension of a box. */
void boxes_bounds(const ht_pieces *pieces, int box, int64_t *bounds);
enum { PIECES_MOST_BOUNDS = 64 };

/* The stretches of a rank's piece; free() them. */
Stretches boxes_stretches(const ht_pieces *pieces, int rank);

/* Elements of the whole tensor, and of a rank's piece. */
int64_t boxes_elements(const ht_pieces *pieces);
int64_t boxes_count(const ht_pieces *pieces, int rank);

/* Whether two tables, whose pieces are numbered as ranks have them, give every rank the same
 * elements in the same order. */
bool boxes_equal(const ht_pieces *a, const ht_pieces *b);

/* Copies a rank's piece between its storage and memory in which its boxes lie one after another,
 * each row-major: into that when `packs`, else out of it. */
void boxes_pack(const ht_pieces *pieces, int rank, void *storage, void *packed, size_t element,
                bool packs);

/* How elements are spread over ranks: in device memory as `pieces` say; or, where these are NULL,
 * in host memory: rank r has those from bounds[r] on before bounds[r + 1], or where there are no
 * bounds rank 0 has all. */
typedef struct Distribution {
    const ht_pieces *pieces;
    int64_t elements;
    int ranks;
    const int64_t *bounds;
} Distribution;

/* Copies every element of a tensor from where `from` has it to all places where `to` wants it. All
 * ranks call it together; `source` and `target` are this rank's storage. */
void boxes_move(Distribution from, const void *source, Distribution to, void *target,
                size_t element);

/* Whether all holders of every element have the same bits; returns the first rank that differs from
 * an earlier holder, or -1, the same on all ranks. */
int boxes_differ(Distribution where, const void *data, size_t element);

#endif
