/* Pieces: devices of a layout that hold the same. */
#include "layout/cells_build.h"

#include <stdlib.h>
#include <uthash.h>

/* A device and the number of its piece. */
typedef struct Member {
    int device, piece;
} Member;

/* The smallest device of each replica, and of each contribution of each replica. */
typedef struct Labels {
    int *replica, *partial;
    int *offset; // by replica, into `partial`
} Labels;

static Labels labels_of(Arena *arena, const Layout *layout, const Region *regions, const int *devices, int count)
{
    Labels labels = {arena_array(arena, int, layout->group_count + 1), arena_array(arena, int, count + 1),
                     arena_array(arena, int, layout->group_count + 2)};
    for (int i = 0; i < count; i++)
        if (labels.offset[regions[i].replica + 1] <= regions[i].partial)
            labels.offset[regions[i].replica + 1] = regions[i].partial + 1;
    for (int r = 0; r < layout->group_count; r++) {
        labels.offset[r + 1] += labels.offset[r];
        labels.replica[r] = INT32_MAX;
    }
    for (int i = 0; i <= count; i++)
        labels.partial[i] = INT32_MAX;
    for (int i = 0; i < count; i++) {
        int *replica = &labels.replica[regions[i].replica],
            *partial = &labels.partial[labels.offset[regions[i].replica] + regions[i].partial];
        *replica = devices[i] < *replica ? devices[i] : *replica;
        *partial = devices[i] < *partial ? devices[i] : *partial;
    }
    return labels;
}

typedef struct PieceKey {
    void *bytes;
    int piece;
    UT_hash_handle hh;
} PieceKey;

/* What makes two devices one piece, as bytes. */
static size_t piece_key(const Region *region, int replica, int partial, int64_t *key)
{
    size_t n = 0;
    key[n++] = replica;
    key[n++] = partial;
    for (int b = 0; b < region->box_count; b++)
        for (int d = 0; d < region->rank; d++) {
            key[n++] = region->boxes[b].dim[d].lo;
            key[n++] = region->boxes[b].dim[d].hi;
        }
    return n * sizeof *key;
}

static const int64_t *storage_of(Arena *arena, const Region *region)
{
    int64_t *storage = arena_array(arena, int64_t, region->box_count + 1);
    for (int b = 0; b < region->box_count; b++) {
        int64_t volume = 1;
        for (int d = 0; d < region->rank; d++)
            volume *= region->boxes[b].dim[d].hi - region->boxes[b].dim[d].lo;
        storage[b + 1] = storage[b] + volume;
    }
    return storage;
}

static int compare_members(const void *a, const void *b)
{
    const Member *x = a, *y = b;
    return (x->device > y->device) - (x->device < y->device);
}

/* Fills the side's devices, in ascending order, with their pieces. */
static void index_devices(Arena *arena, CellSide *side, Member *members, int count)
{
    qsort(members, (size_t)count, sizeof *members, compare_members);
    int *devices = arena_array(arena, int, count), *pieces = arena_array(arena, int, count);
    for (int i = 0; i < count; i++) {
        devices[i] = members[i].device;
        pieces[i] = members[i].piece;
    }
    side->devices = devices;
    side->piece_of = pieces;
    side->device_count = count;
}

/* The piece of each device goes to `members`, the number of devices a piece to `counts`. */
static int find_pieces(Arena *arena, const CellSide *side, const Region *regions, Member *members, int count, int *counts,
                       const int *devices)
{
    Labels labels = labels_of(arena, side->layout, regions, devices, count);
    PieceKey *table = NULL, *found;
    int pieces = 0, most = 0;
    for (int i = 0; i < count; i++)
        most = regions[i].box_count > most ? regions[i].box_count : most;
    int64_t *key = arena_array(arena, int64_t, 2 + 2 * (most + 1) * (regions ? regions[0].rank + 1 : 1));
    bool partial = side->partial != STATE_DUP;
    for (int i = 0; i < count; i++) {
        const Region *region = &regions[i];
        size_t size = piece_key(region, partial ? labels.replica[region->replica] : 0,
                                partial ? labels.partial[labels.offset[region->replica] + region->partial] : 0, key);
        HASH_FIND(hh, table, key, size, found);
        if (!found) {
            found = arena_new(arena, PieceKey);
            *found = (PieceKey){.bytes = arena_copy(arena, key, size), .piece = pieces++};
            HASH_ADD_KEYPTR(hh, table, found->bytes, size, found);
        }
        members[i] = (Member){devices[i], found->piece};
        counts[found->piece]++;
    }
    HASH_CLEAR(hh, table);
    return pieces;
}

void make_pieces(Arena *arena, CellSide *side, Shape shape)
{
    int count;
    const int *devices = layout_devices(arena, side->layout, &count);
    const Region *regions = layout_regions(arena, side->layout, shape, &count);
    Member *members = arena_array(arena, Member, count);
    int *counts = arena_array(arena, int, count);
    side->partial = layout_partial(side->layout);
    side->piece_count = find_pieces(arena, side, regions, members, count, counts, devices);
    Piece *pieces = arena_array(arena, Piece, side->piece_count);
    Labels labels = labels_of(arena, side->layout, regions, devices, count);
    for (int i = 0; i < count; i++) {
        Piece *piece = &pieces[members[i].piece];
        if (!piece->region) {
            piece->region = &regions[i];
            piece->devices = arena_array(arena, int, counts[members[i].piece]);
            piece->storage = storage_of(arena, &regions[i]);
            piece->replica = side->partial == STATE_DUP ? 0 : labels.replica[regions[i].replica];
            piece->partial = side->partial == STATE_DUP ? 0 : labels.partial[labels.offset[regions[i].replica] + regions[i].partial];
        }
        piece->devices[piece->device_count++] = devices[i];
    }
    side->pieces = pieces;
    index_devices(arena, side, members, count);
}

int cells_piece_of(const Cells *cells, Side which, int device)
{
    const CellSide *side = &cells->side[which];
    int low = 0, high = side->device_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (side->devices[middle] < device)
            low = middle + 1;
        else
            high = middle;
    }
    return low < side->device_count && side->devices[low] == device ? side->piece_of[low] : -1;
}
