/* Moves feeds, fetches and parameters between ranks by element number. exchange/reshard.c has
 * conversions inside a step. */
#include "session/data/boxes.h"

#include "transport/world.h"
#include "device/device.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

int64_t boxes_elements(const ht_pieces *pieces) {
    int64_t count = 1;
    for (int d = 0; d < pieces->rank; d++) count *= pieces->extent[d];
    return count;
}

/* Returns the number of a rank's piece, by binary search; -1: the rank holds nothing. */
static int piece_of(const ht_pieces *pieces, int rank) {
    int low = 0, high = pieces->run_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (pieces->run[middle].device + pieces->run[middle].count <= rank) low = middle + 1;
        else high = middle;
    }
    const ht_run *run =
        low < pieces->run_count && pieces->run[low].device <= rank ? &pieces->run[low] : NULL;
    return run ? run->piece + (rank - run->device) * run->step : -1;
}

/* Returns the first box of the piece `behind` pieces after the rank's piece; 0: it has no piece. */
static int first_box(const ht_pieces *pieces, int rank, int behind) {
    int piece = piece_of(pieces, rank);
    return piece < 0 ? 0 : pieces->first ? pieces->first[piece + behind] : piece + behind;
}

int boxes_first(const ht_pieces *pieces, int rank) { return first_box(pieces, rank, 0); }

int boxes_end(const ht_pieces *pieces, int rank) { return first_box(pieces, rank, 1); }

void boxes_bounds(const ht_pieces *pieces, int box, int64_t *bounds) {
    ptrdiff_t width = 1 + 3 * pieces->rank;
    int low = 0, high = pieces->row_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (pieces->box[middle * width] <= box) low = middle;
        else high = middle - 1;
    }
    const int64_t *row = pieces->box + low * width;
    for (int d = 0; d < pieces->rank; d++)
        for (int side = 0; side < 2; side++)
            bounds[2 * d + side] = row[1 + 3 * d + side] + (box - row[0]) * row[3 + 3 * d];
}

static int64_t box_count(const ht_pieces *pieces, int box) {
    int64_t count = 1, bounds[PIECES_MOST_BOUNDS];
    boxes_bounds(pieces, box, bounds);
    for (int d = 0; d < pieces->rank; d++) count *= bounds[2 * d + 1] - bounds[2 * d];
    return count;
}

int64_t boxes_count(const ht_pieces *pieces, int rank) {
    int64_t count = 0;
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++)
        count += box_count(pieces, b);
    return count;
}

static bool same_numbers(const int64_t *a, const int64_t *b, int64_t count) {
    return !memcmp(a, b, sizeof *a * (size_t)count);
}

/* Returns the number of pieces: the largest piece number of a rank, plus 1. */
static int piece_count(const ht_pieces *pieces) {
    int count = 0;
    for (int i = 0; i < pieces->run_count; i++)
        for (int end = 0; end < 2; end++) {
            int piece =
                pieces->run[i].piece + end * (pieces->run[i].count - 1) * pieces->run[i].step;
            count = piece >= count ? piece + 1 : count;
        }
    return count;
}

bool boxes_equal(const ht_pieces *a, const ht_pieces *b) {
    if (a == b) return true;
    if (a->rank != b->rank || a->run_count != b->run_count || a->row_count != b->row_count ||
        !a->placing != !b->placing || !a->first != !b->first ||
        memcmp(a->run, b->run, sizeof *a->run * (size_t)a->run_count))
        return false;
    int count = piece_count(a), boxes = a->first ? a->first[count] : count;
    return same_numbers(a->extent, b->extent, a->rank) &&
           (!a->first || !memcmp(a->first, b->first, sizeof *a->first * (size_t)(count + 1))) &&
           same_numbers(a->box, b->box, (int64_t)a->row_count * (1 + 3 * a->rank)) &&
           (!a->placing || same_numbers(a->placing, b->placing, (int64_t)(1 + a->rank) * boxes));
}

/* ---- stretches ---- */

/* Returns the first dimension d such that the box covers all dimensions after d. Elements with
 * equal indices before d are contiguous in the tensor. */
static int contiguous_from(const ht_pieces *pieces, const int64_t *bounds) {
    int d = pieces->rank;
    while (d > 0 &&
           (d == pieces->rank || (bounds[2 * d] == 0 && bounds[2 * d + 1] == pieces->extent[d])))
        d--;
    return d;
}

/* Returns the offset, in elements, of a box's row from the box's first element. `index` has the
 * row's indices before dimension `inner`; `room`: extents of the storage (NULL: of the box). */
static int64_t row_place(const ht_pieces *pieces, const int64_t *bounds, const int64_t *room,
                         int inner, const int64_t *index) {
    int64_t place = 0, pitch = 1;
    for (int d = pieces->rank - 1; d >= 0; d--) {
        place += d < inner ? index[d] * pitch : 0;
        pitch *= room ? room[d] : bounds[2 * d + 1] - bounds[2 * d];
    }
    return place;
}

/* Writes the stretches of a box in row-major order to `stretches` and returns their number. `at` is
 * the box's offset in the storage, unless the layout gives a placing. */
static int64_t box_stretches(const ht_pieces *pieces, int box, int64_t at, Stretch *stretches) {
    int64_t bounds[PIECES_MOST_BOUNDS];
    boxes_bounds(pieces, box, bounds);
    const int64_t *placing =
        pieces->placing ? pieces->placing + (ptrdiff_t)box * (1 + pieces->rank) : NULL;
    int inner = contiguous_from(pieces, bounds);
    int64_t length = 1, scale = 1, rows = 1, index[32] = {0};
    for (int d = inner; d < pieces->rank; d++) length *= bounds[2 * d + 1] - bounds[2 * d];
    for (int d = inner + 1; d < pieces->rank; d++) scale *= pieces->extent[d];
    for (int d = 0; d < inner; d++) rows *= bounds[2 * d + 1] - bounds[2 * d];
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = 0;
        for (int d = 0; d < inner; d++)
            first = first * pieces->extent[d] + bounds[2 * d] + index[d];
        if (pieces->rank) first = (first * pieces->extent[inner] + bounds[2 * inner]) * scale;
        int64_t place = (placing ? placing[0] : at) +
                        row_place(pieces, bounds, placing ? placing + 1 : NULL, inner, index);
        stretches[row] = (Stretch){first, first + length, place};
        for (int d = inner - 1; d >= 0 && ++index[d] == bounds[2 * d + 1] - bounds[2 * d]; d--)
            index[d] = 0;
    }
    return rows;
}

static int64_t box_stretch_count(const ht_pieces *pieces, int box) {
    int64_t rows = 1, bounds[PIECES_MOST_BOUNDS];
    boxes_bounds(pieces, box, bounds);
    for (int d = 0; d < contiguous_from(pieces, bounds); d++)
        rows *= bounds[2 * d + 1] - bounds[2 * d];
    return rows;
}

static int compare_stretches(const void *a, const void *b) {
    int64_t left = ((const Stretch *)a)->lo, right = ((const Stretch *)b)->lo;
    return (left > right) - (left < right);
}

/* Merges stretches that are adjacent both in the tensor and in storage. */
static void join_stretches(Stretches *stretches) {
    int64_t kept = 0;
    for (int64_t i = 0; i < stretches->count; i++) {
        Stretch *last = kept ? &stretches->stretch[kept - 1] : NULL;
        if (last && last->hi == stretches->stretch[i].lo &&
            last->at + last->hi - last->lo == stretches->stretch[i].at)
            last->hi = stretches->stretch[i].hi;
        else stretches->stretch[kept++] = stretches->stretch[i];
    }
    stretches->count = kept;
}

Stretches boxes_stretches(const ht_pieces *pieces, int rank) {
    Stretches stretches = {0};
    int64_t at = 0, total = 0;
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++)
        total += box_stretch_count(pieces, b);
    stretches.stretch = memory_array(total, sizeof(Stretch));
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++) {
        stretches.count += box_stretches(pieces, b, at, stretches.stretch + stretches.count);
        at += box_count(pieces, b);
    }
    qsort(stretches.stretch, (size_t)stretches.count, sizeof(Stretch), compare_stretches);
    join_stretches(&stretches);
    return stretches;
}

void boxes_pack(const ht_pieces *pieces, int rank, float *storage, float *packed, bool packs) {
    int64_t at = 0;
    for (int b = boxes_first(pieces, rank); b < boxes_end(pieces, rank); b++) {
        Stretch *stretch = memory_array(box_stretch_count(pieces, b), sizeof *stretch);
        int64_t count = box_stretches(pieces, b, at, stretch);
        for (int64_t i = 0; i < count; i++) {
            int64_t elements = stretch[i].hi - stretch[i].lo;
            float *place = storage + stretch[i].at;
            memcpy(packs ? packed : place, packs ? place : packed,
                   (size_t)elements * sizeof *packed);
            packed += elements;
        }
        at += box_count(pieces, b);
        free(stretch);
    }
}

/* Returns the stretches that `rank` holds under a distribution. */
static Stretches stretches_of(Distribution where, int rank) {
    if (where.pieces)
        return rank < where.ranks ? boxes_stretches(where.pieces, rank)
                                  : (Stretches){0, memory_array(0, sizeof(Stretch))};
    Stretches stretches = {0, memory_array(1, sizeof(Stretch))};
    int64_t lo = where.bounds ? where.bounds[rank] : 0, hi = where.bounds ? where.bounds[rank + 1]
                                                             : rank       ? 0
                                                                          : where.elements;
    if (lo < hi) stretches.stretch[stretches.count++] = (Stretch){lo, hi, 0};
    return stretches;
}

/* Returns the parts of `a` that no stretch of `b` covers; `b` is ascending and disjoint. */
static Stretches stretches_minus(Stretches a, Stretches b) {
    Stretches rest = {0, memory_array(a.count + b.count, sizeof(Stretch))};
    int64_t j = 0;
    for (int64_t i = 0; i < a.count; i++) {
        int64_t lo = a.stretch[i].lo;
        while (j < b.count && b.stretch[j].hi <= lo) j++;
        for (int64_t k = j; lo < a.stretch[i].hi; k++) {
            bool covers = k < b.count && b.stretch[k].lo < a.stretch[i].hi;
            int64_t hi = covers ? b.stretch[k].lo : a.stretch[i].hi;
            if (hi > lo)
                rest.stretch[rest.count++] =
                    (Stretch){lo, hi, a.stretch[i].at + lo - a.stretch[i].lo};
            lo = covers ? b.stretch[k].hi : a.stretch[i].hi;
        }
    }
    return rest;
}

/* Returns the union of two element sets; the stretches' `at` is meaningless. */
static Stretches stretches_union(Stretches a, Stretches b) {
    Stretches all = {0, memory_array(a.count + b.count, sizeof(Stretch))};
    for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
        Stretch next = j == b.count || (i < a.count && a.stretch[i].lo < b.stretch[j].lo)
                           ? a.stretch[i++]
                           : b.stretch[j++];
        Stretch *last = all.count ? &all.stretch[all.count - 1] : NULL;
        if (last && last->hi >= next.lo) last->hi = next.hi > last->hi ? next.hi : last->hi;
        else all.stretch[all.count++] = next;
    }
    return all;
}

/* Returns, by rank, the stretches that the rank sends: its elements that no earlier rank holds. */
static Stretches *owned_stretches(Distribution where) {
    int ranks = world_size();
    Stretches *owned = memory_array(ranks, sizeof(Stretches));
    Stretches covered = {0, memory_array(0, sizeof(Stretch))};
    for (int rank = 0; rank < ranks; rank++) {
        Stretches all = stretches_of(where, rank);
        owned[rank] = stretches_minus(all, covered);
        Stretches more = stretches_union(covered, all);
        free(covered.stretch);
        free(all.stretch);
        covered = more;
    }
    free(covered.stretch);
    return owned;
}

static void free_stretches(Stretches *stretches, int count) {
    for (int i = 0; i < count; i++) free(stretches[i].stretch);
    free(stretches);
}

/* ---- moving ---- */

/* A range of elements that both sides hold: offset in each storage and length, in elements. */
typedef struct Common {
    int64_t from, to, count;
} Common;

/* Sets *common (free() it) to the ranges in both lists and *elements to their total length. Returns
 * the number of ranges. */
static int64_t stretches_common(Stretches from, Stretches to, Common **common, int64_t *elements) {
    *common = memory_array(from.count + to.count, sizeof(Common));
    *elements = 0;
    int64_t count = 0;
    for (int64_t i = 0, j = 0; i < from.count && j < to.count;) {
        const Stretch *a = &from.stretch[i], *b = &to.stretch[j];
        int64_t lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi;
        if (lo < hi) {
            (*common)[count++] = (Common){a->at + lo - a->lo, b->at + lo - b->lo, hi - lo};
            *elements += hi - lo;
        }
        if (a->hi < b->hi) i++;
        else j++;
    }
    return count;
}

/* Copies the elements that this rank holds under both distributions. */
static void keep_here(Distribution from, const char *source, Distribution to, char *target,
                      size_t element) {
    Stretches had = stretches_of(from, world_rank()), wanted = stretches_of(to, world_rank());
    Common *common;
    int64_t elements, count = stretches_common(had, wanted, &common, &elements);
    for (int64_t i = 0; i < count; i++)
        memmove(target + (size_t)common[i].to * element, source + (size_t)common[i].from * element,
                (size_t)common[i].count * element);
    free(common);
    free(had.stretch);
    free(wanted.stretch);
}

/* Returns the stretches that a rank needs under `to` but does not hold under `from`. */
static Stretches stretches_missing(Distribution from, Distribution to, int rank) {
    Stretches had = stretches_of(from, rank), wanted = stretches_of(to, rank),
              missing = stretches_minus(wanted, had);
    free(had.stretch);
    free(wanted.stretch);
    return missing;
}

/* A message between this rank and another: ranges of elements, and the packed elements. */
typedef struct Parcel {
    Common *common;
    int64_t count;
    char *packed;
} Parcel;

/* Copies elements from storage into a parcel if `packs`, else from the parcel into storage. */
static void parcel_copy(const Parcel *parcel, char *storage, size_t element, bool packs) {
    char *at = parcel->packed;
    for (int64_t i = 0; i < parcel->count; i++) {
        size_t bytes = (size_t)parcel->common[i].count * element;
        if (packs) memcpy(at, storage + (size_t)parcel->common[i].from * element, bytes);
        else memcpy(storage + (size_t)parcel->common[i].to * element, at, bytes);
        at += bytes;
    }
}

/* Returns whether storage has the same bits as a parcel. */
static bool parcel_equal(const Parcel *parcel, const char *storage, size_t element) {
    const char *at = parcel->packed;
    bool equal = true;
    for (int64_t i = 0; equal && i < parcel->count; i++) {
        size_t bytes = (size_t)parcel->common[i].count * element;
        equal = !memcmp(storage + (size_t)parcel->common[i].to * element, at, bytes);
        at += bytes;
    }
    return equal;
}

/* Allocates the parcel of elements common to `from` and `to`. Returns its transfer with `rank`. */
static HostTransfer add_parcel(Parcel *parcel, Stretches from, Stretches to, int rank,
                               size_t element) {
    int64_t elements;
    parcel->count = stretches_common(from, to, &parcel->common, &elements);
    parcel->packed = memory_array(elements, element);
    return (HostTransfer){parcel->packed, (size_t)elements * element, rank};
}

static void free_parcels(Parcel *parcels, int count) {
    for (int i = 0; i < count; i++) {
        free(parcels[i].common);
        free(parcels[i].packed);
    }
    free(parcels);
}

/* Sends parcels to all other ranks, and receives parcels from them into `taken`, by rank. */
static void exchange_parcels(const Stretches *givers, const Stretches *takers, const char *source,
                             Parcel *taken, size_t element) {
    int ranks = world_size(), me = world_rank(), count = 0;
    Parcel *given = memory_array(ranks, sizeof *given);
    HostTransfer *sends = memory_array(2 * (int64_t)ranks, sizeof *sends),
                 *receives = sends + ranks;
    for (int rank = 0; rank < ranks; rank++)
        if (rank != me) {
            sends[count] = add_parcel(&given[rank], givers[me], takers[rank], rank, element);
            receives[count++] = add_parcel(&taken[rank], givers[rank], takers[me], rank, element);
            parcel_copy(&given[rank], (char *)source, element, true);
        }
    world_exchange(sends, count, receives, count);
    free_parcels(given, ranks);
    free(sends);
}

/* A distribution, and this rank's part of it in host memory. */
typedef struct Side {
    Distribution where;
    void *data;
} Side;

/* Exchanges all elements between `from` and `to`. `compare`: compares received elements with those
 * of `to` instead of storing them, and returns whether all are equal. */
static bool exchange_all(Side from, Side to, size_t element, bool compare) {
    int ranks = world_size();
    Stretches *givers = owned_stretches(from.where), *takers = memory_array(ranks, sizeof *takers);
    Parcel *taken = memory_array(ranks, sizeof *taken);
    for (int rank = 0; rank < ranks; rank++)
        takers[rank] =
            compare ? stretches_of(to.where, rank) : stretches_missing(from.where, to.where, rank);
    exchange_parcels(givers, takers, from.data, taken, element);
    bool equal = true;
    for (int rank = 0; rank < ranks; rank++)
        if (compare) equal = equal && parcel_equal(&taken[rank], to.data, element);
        else parcel_copy(&taken[rank], to.data, element, false);
    if (!compare) keep_here(from.where, from.data, to.where, to.data, element);
    free_parcels(taken, ranks);
    free_stretches(givers, ranks);
    free_stretches(takers, ranks);
    return equal;
}

/* Returns the bytes that this rank holds in device memory under a distribution. */
static int64_t own_bytes(Distribution where, size_t element) {
    bool holds = where.pieces && world_rank() < where.ranks;
    return holds ? boxes_count(where.pieces, world_rank()) * (int64_t)element : 0;
}

/* Returns host memory with this rank's part of a distribution; maps device memory if needed. */
static void *map_own(Distribution where, const void *data, size_t element, DeviceAccess access) {
    return where.pieces ? device_map((void *)data, own_bytes(where, element), access)
                        : (void *)data;
}

static void unmap_own(Distribution where, const void *data, void *host, size_t element,
                      DeviceAccess access) {
    if (where.pieces) device_unmap((void *)data, host, own_bytes(where, element), access);
}

void boxes_move(Distribution from, const void *source, Distribution to, void *target,
                size_t element) {
    void *give = map_own(from, source, element, DEVICE_READ),
         *take = map_own(to, target, element, DEVICE_WRITE);
    exchange_all((Side){from, give}, (Side){to, take}, element, false);
    unmap_own(from, source, give, element, DEVICE_READ);
    unmap_own(to, target, take, element, DEVICE_WRITE);
}

int boxes_differ(Distribution where, const void *data, size_t element) {
    int size = world_size();
    if (size == 1) return -1;
    void *host = map_own(where, data, element, DEVICE_READ);
    bool equal = exchange_all((Side){where, host}, (Side){where, host}, element, true);
    unmap_own(where, data, host, element, DEVICE_READ);
    int first = world_least(equal ? size : world_rank());
    return first == size ? -1 : first;
}
