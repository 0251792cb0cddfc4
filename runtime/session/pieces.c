#include "session/pieces.h"

#include "transport/world.h"
#include "device/device.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

int64_t pieces_elements(const ht_pieces *pieces)
{
    int64_t count = 1;
    for (int d = 0; d < pieces->rank; d++)
        count *= pieces->extent[d];
    return count;
}

static int64_t box_count(const ht_pieces *pieces, int box)
{
    int64_t count = 1;
    const int64_t *bounds = pieces->box + (ptrdiff_t)box * 2 * pieces->rank;
    for (int d = 0; d < pieces->rank; d++)
        count *= bounds[2 * d + 1] - bounds[2 * d];
    return count;
}

int64_t pieces_count(const ht_pieces *pieces, int rank)
{
    int64_t count = 0;
    for (int b = pieces->first[rank]; b < pieces->first[rank + 1]; b++)
        count += box_count(pieces, b);
    return count;
}

bool pieces_equal(const ht_pieces *a, const ht_pieces *b, int ranks)
{
    if (a == b)
        return true;
    size_t rank = (size_t)a->rank;
    return a->rank == b->rank && !memcmp(a->extent, b->extent, sizeof *a->extent * rank) &&
           !memcmp(a->first, b->first, sizeof *a->first * (size_t)(ranks + 1)) &&
           !memcmp(a->box, b->box, sizeof *a->box * 2 * rank * (size_t)a->first[ranks]);
}

/* ---- runs ---- */

/* The first dimension from which on a box has the whole extent behind it: its rows are contiguous from there. */
static int contiguous_from(const ht_pieces *pieces, const int64_t *bounds)
{
    int d = pieces->rank;
    while (d > 0 && (d == pieces->rank || (bounds[2 * d] == 0 && bounds[2 * d + 1] == pieces->extent[d])))
        d--;
    return d;
}

/* Appends the runs of one box whose storage begins at `at`. */
static int64_t box_runs(const ht_pieces *pieces, const int64_t *bounds, int64_t at, Run *runs)
{
    int inner = contiguous_from(pieces, bounds);
    int64_t length = 1, scale = 1, rows = 1, index[32] = {0};
    for (int d = inner; d < pieces->rank; d++)
        length *= bounds[2 * d + 1] - bounds[2 * d];
    for (int d = inner + 1; d < pieces->rank; d++)
        scale *= pieces->extent[d];
    for (int d = 0; d < inner; d++)
        rows *= bounds[2 * d + 1] - bounds[2 * d];
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = 0;
        for (int d = 0; d < inner; d++)
            first = first * pieces->extent[d] + bounds[2 * d] + index[d];
        if (pieces->rank)
            first = (first * pieces->extent[inner] + bounds[2 * inner]) * scale;
        runs[row] = (Run){first, first + length, at + row * length};
        for (int d = inner - 1; d >= 0 && ++index[d] == bounds[2 * d + 1] - bounds[2 * d]; d--)
            index[d] = 0;
    }
    return rows;
}

static int64_t box_run_count(const ht_pieces *pieces, const int64_t *bounds)
{
    int64_t rows = 1;
    for (int d = 0; d < contiguous_from(pieces, bounds); d++)
        rows *= bounds[2 * d + 1] - bounds[2 * d];
    return rows;
}

static int compare_runs(const void *a, const void *b)
{
    int64_t left = ((const Run *)a)->lo, right = ((const Run *)b)->lo;
    return (left > right) - (left < right);
}

/* Joins runs that follow each other in the tensor and in storage. */
static void join_runs(Runs *runs)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < runs->count; i++) {
        Run *last = kept ? &runs->run[kept - 1] : NULL;
        if (last && last->hi == runs->run[i].lo && last->at + last->hi - last->lo == runs->run[i].at)
            last->hi = runs->run[i].hi;
        else
            runs->run[kept++] = runs->run[i];
    }
    runs->count = kept;
}

static Runs runs_of_pieces(const ht_pieces *pieces, int rank)
{
    Runs runs = {0};
    int64_t at = 0, total = 0;
    for (int b = pieces->first[rank]; b < pieces->first[rank + 1]; b++)
        total += box_run_count(pieces, pieces->box + (ptrdiff_t)b * 2 * pieces->rank);
    runs.run = memory_array(total, sizeof(Run));
    for (int b = pieces->first[rank]; b < pieces->first[rank + 1]; b++) {
        runs.count += box_runs(pieces, pieces->box + (ptrdiff_t)b * 2 * pieces->rank, at, runs.run + runs.count);
        at += box_count(pieces, b);
    }
    qsort(runs.run, (size_t)runs.count, sizeof(Run), compare_runs);
    join_runs(&runs);
    return runs;
}

/* What `rank` has under a spread. */
static Runs runs_of(Spread spread, int rank)
{
    if (spread.pieces)
        return rank < spread.ranks ? runs_of_pieces(spread.pieces, rank) : (Runs){0, memory_array(0, sizeof(Run))};
    Runs runs = {0, memory_array(1, sizeof(Run))};
    if (rank == 0 && spread.elements)
        runs.run[runs.count++] = (Run){0, spread.elements, 0};
    return runs;
}

/* The parts of `a` that no run of `b` covers; `b` ascending and disjoint. */
static Runs runs_minus(Runs a, Runs b)
{
    Runs rest = {0, memory_array(a.count + b.count, sizeof(Run))};
    int64_t j = 0;
    for (int64_t i = 0; i < a.count; i++) {
        int64_t lo = a.run[i].lo;
        while (j < b.count && b.run[j].hi <= lo)
            j++;
        for (int64_t k = j; lo < a.run[i].hi; k++) {
            bool covers = k < b.count && b.run[k].lo < a.run[i].hi;
            int64_t hi = covers ? b.run[k].lo : a.run[i].hi;
            if (hi > lo)
                rest.run[rest.count++] = (Run){lo, hi, a.run[i].at + lo - a.run[i].lo};
            lo = covers ? b.run[k].hi : a.run[i].hi;
        }
    }
    return rest;
}

/* All elements of both, without regard to storage. */
static Runs runs_union(Runs a, Runs b)
{
    Runs all = {0, memory_array(a.count + b.count, sizeof(Run))};
    for (int64_t i = 0, j = 0; i < a.count || j < b.count;) {
        Run next = j == b.count || (i < a.count && a.run[i].lo < b.run[j].lo) ? a.run[i++] : b.run[j++];
        Run *last = all.count ? &all.run[all.count - 1] : NULL;
        if (last && last->hi >= next.lo)
            last->hi = next.hi > last->hi ? next.hi : last->hi;
        else
            all.run[all.count++] = next;
    }
    return all;
}

/* What each rank gives away: its elements that no earlier rank has. */
static Runs *owned_runs(Spread spread)
{
    int ranks = world_size();
    Runs *owned = memory_array(ranks, sizeof(Runs));
    Runs covered = {0, memory_array(0, sizeof(Run))};
    for (int rank = 0; rank < ranks; rank++) {
        Runs all = runs_of(spread, rank);
        owned[rank] = runs_minus(all, covered);
        Runs more = runs_union(covered, all);
        free(covered.run);
        free(all.run);
        covered = more;
    }
    free(covered.run);
    return owned;
}

static void free_runs(Runs *runs, int count)
{
    for (int i = 0; i < count; i++)
        free(runs[i].run);
    free(runs);
}

/* ---- moving ---- */

/* A stretch that both sides have: where it begins in each storage. */
typedef struct Common {
    int64_t from, to, count;
} Common;

/* The common stretches, in order; the number of elements goes to *elements. Returns how many. */
static int64_t runs_common(Runs from, Runs to, Common **common, int64_t *elements)
{
    *common = memory_array(from.count + to.count, sizeof(Common));
    *elements = 0;
    int64_t count = 0;
    for (int64_t i = 0, j = 0; i < from.count && j < to.count;) {
        const Run *a = &from.run[i], *b = &to.run[j];
        int64_t lo = a->lo > b->lo ? a->lo : b->lo, hi = a->hi < b->hi ? a->hi : b->hi;
        if (lo < hi) {
            (*common)[count++] = (Common){a->at + lo - a->lo, b->at + lo - b->lo, hi - lo};
            *elements += hi - lo;
        }
        if (a->hi < b->hi)
            i++;
        else
            j++;
    }
    return count;
}

static void copy_here(const Common *common, int64_t count, const char *source, char *target, size_t element)
{
    for (int64_t i = 0; i < count; i++)
        memmove(target + (size_t)common[i].to * element, source + (size_t)common[i].from * element, (size_t)common[i].count * element);
}

/* Sends what `to` wants of `source`. */
static void give(const Common *common, int64_t count, int64_t elements, const char *source, size_t element, int to)
{
    char *packed = memory_array(elements, element);
    char *at = packed;
    for (int64_t i = 0; i < count; i++) {
        memcpy(at, source + (size_t)common[i].from * element, (size_t)common[i].count * element);
        at += (size_t)common[i].count * element;
    }
    world_send(packed, (size_t)elements * element, to);
    free(packed);
}

/* Receives into `target`; with `compare` it is not changed. Returns whether it had these bits. */
static bool take(const Common *common, int64_t count, int64_t elements, char *target, size_t element, int from, bool compare)
{
    char *packed = memory_array(elements, element);
    world_receive(packed, (size_t)elements * element, from);
    const char *at = packed;
    bool equal = true;
    for (int64_t i = 0; i < count; i++) {
        size_t bytes = (size_t)common[i].count * element;
        char *place = target + (size_t)common[i].to * element;
        equal = equal && (!compare || !memcmp(place, at, bytes));
        if (!compare)
            memcpy(place, at, bytes);
        at += bytes;
    }
    free(packed);
    return equal;
}

/* One pair of ranks; nothing unless this rank is one of them. */
static bool exchange(Runs from, Runs to, int giver, int taker, const void *source, void *target, size_t element, bool compare)
{
    int me = world_rank();
    if (me != giver && me != taker)
        return true;
    Common *common;
    int64_t elements, count = runs_common(from, to, &common, &elements);
    bool equal = true;
    if (count && giver == taker && !compare)
        copy_here(common, count, source, target, element);
    else if (count && giver != taker && me == giver)
        give(common, count, elements, source, element, taker);
    else if (count && giver != taker)
        equal = take(common, count, elements, target, element, giver, compare);
    free(common);
    return equal;
}

/* Every pair of ranks in one order, the same on all ranks, so that blocking calls cannot wait in a circle. */
static bool exchange_all(Spread from, const void *source, Spread to, void *target, size_t element, bool compare)
{
    int ranks = world_size();
    Runs *givers = owned_runs(from);
    Runs *takers = memory_array(ranks, sizeof(Runs));
    for (int rank = 0; rank < ranks; rank++)
        takers[rank] = runs_of(to, rank);
    bool equal = true;
    for (int giver = 0; giver < ranks; giver++)
        for (int taker = 0; givers[giver].count && taker < ranks; taker++)
            equal = exchange(givers[giver], takers[taker], giver, taker, source, target, element, compare) && equal;
    free_runs(givers, ranks);
    free_runs(takers, ranks);
    return equal;
}

/* Bytes of this rank's part of a spread. */
static int64_t own_bytes(Spread spread, size_t element)
{
    bool holds = spread.pieces && world_rank() < spread.ranks;
    return holds ? pieces_count(spread.pieces, world_rank()) * (int64_t)element : 0;
}

/* Host memory with this rank's part of a spread. */
static void *spread_map(Spread spread, const void *data, size_t element, DeviceAccess access)
{
    return spread.pieces ? device_map((void *)data, own_bytes(spread, element), access) : (void *)data;
}

static void spread_unmap(Spread spread, const void *data, void *host, size_t element, DeviceAccess access)
{
    if (spread.pieces)
        device_unmap((void *)data, host, own_bytes(spread, element), access);
}

void pieces_move(Spread from, const void *source, Spread to, void *target, size_t element)
{
    void *give = spread_map(from, source, element, DEVICE_READ), *take = spread_map(to, target, element, DEVICE_WRITE);
    exchange_all(from, give, to, take, element, false);
    spread_unmap(from, source, give, element, DEVICE_READ);
    spread_unmap(to, target, take, element, DEVICE_WRITE);
}

int pieces_differ(Spread spread, const void *data, size_t element)
{
    int size = world_size();
    if (size == 1)
        return -1;
    void *host = spread_map(spread, data, element, DEVICE_READ);
    bool equal = exchange_all(spread, host, spread, host, element, true);
    spread_unmap(spread, data, host, element, DEVICE_READ);
    int first = world_least(equal ? size : world_rank());
    return first == size ? -1 : first;
}
