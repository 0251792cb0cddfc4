#define _GNU_SOURCE
#include "comm/rings.h"

#include <hetu/kernel.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    LINE = 64,           // bytes of a cache line
    MOST_ROOM = 1 << 18, // bytes of a ring, at most and at least
    LEAST_ROOM = 1 << 12,
    ALL_ROOM = 32 << 20 // of all rings of a machine
};

/* The bytes from `read` to before `written` of a stream lie in the ring, each at its number modulo the ring's room. */
typedef struct Ring {
    _Alignas(LINE) _Atomic uint64_t written;
    _Alignas(LINE) _Atomic uint64_t read;
    _Alignas(LINE) char data[];
} Ring;

struct Rings {
    int rank, count;
    size_t room;
    char **from; // by rank: the rings that it reads, by the rank that writes them
};

static size_t ring_bytes(const Rings *rings) { return sizeof(Ring) + rings->room; }

static size_t all_bytes(const Rings *rings) { return ring_bytes(rings) * (size_t)rings->count; }

static Ring *ring_at(const Rings *rings, int reader, int writer)
{
    return (Ring *)(rings->from[reader] + ring_bytes(rings) * (size_t)writer);
}

static void ring_name(char *name, size_t size, uint64_t key, int rank)
{
    snprintf(name, size, "/hetu-%016llx-%d", (unsigned long long)key, rank);
}

/* Maps a rank's rings; NULL when there is no room. */
static char *map_rings(const Rings *rings, uint64_t key, int rank)
{
    char name[64];
    ring_name(name, sizeof name, key, rank);
    bool own = rank == rings->rank;
    int file = shm_open(name, own ? O_RDWR | O_CREAT | O_EXCL : O_RDWR, 0600);
    if (file < 0)
        return NULL;
    bool fits = !own || !posix_fallocate(file, 0, (off_t)all_bytes(rings));
    void *memory = fits ? mmap(NULL, all_bytes(rings), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    close(file);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t choose_room(int count)
{
    size_t room = MOST_ROOM;
    while (room > LEAST_ROOM && room * (size_t)count * (size_t)count > ALL_ROOM)
        room /= 2;
    return room;
}

Rings *rings_open(uint64_t key, int rank, int count, bool (*meet)(bool fine))
{
    char name[64];
    Rings *rings = calloc(1, sizeof *rings);
    char **from = calloc((size_t)count, sizeof *from);
    if (!rings || !from)
        ht_fail("no memory to connect %d ranks", count);
    *rings = (Rings){rank, count, choose_room(count), from};
    from[rank] = map_rings(rings, key, rank);
    bool fine = meet(from[rank] != NULL);
    for (int other = 0; fine && other < count; other++)
        if (other != rank)
            fine = (from[other] = map_rings(rings, key, other)) != NULL;
    fine = meet(fine);
    ring_name(name, sizeof name, key, rank);
    shm_unlink(name);
    if (fine)
        return rings;
    rings_close(rings);
    return NULL;
}

void rings_close(Rings *rings)
{
    for (int rank = 0; rings && rank < rings->count; rank++)
        if (rings->from[rank])
            munmap(rings->from[rank], all_bytes(rings));
    if (rings)
        free(rings->from);
    free(rings);
}

/* Copies between a ring, from the stream's byte `at` on, and memory. */
static void ring_copy(Ring *ring, size_t room, uint64_t at, char *data, size_t bytes, bool to_ring)
{
    size_t first = room - (size_t)(at % room), head = first < bytes ? first : bytes;
    char *part[2] = {ring->data + at % room, ring->data};
    size_t length[2] = {head, bytes - head};
    for (int i = 0; i < 2; i++) {
        memcpy(to_ring ? part[i] : data, to_ring ? data : part[i], length[i]);
        data += length[i];
    }
}

size_t ring_put(Rings *rings, int to, const void *data, size_t bytes)
{
    Ring *ring = ring_at(rings, to, rings->rank);
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed),
             read = atomic_load_explicit(&ring->read, memory_order_acquire);
    size_t free_bytes = rings->room - (size_t)(written - read), moved = bytes < free_bytes ? bytes : free_bytes;
    ring_copy(ring, rings->room, written, (char *)data, moved, true);
    atomic_store_explicit(&ring->written, written + moved, memory_order_release);
    return moved;
}

size_t ring_get(Rings *rings, int from, void *data, size_t bytes)
{
    Ring *ring = ring_at(rings, rings->rank, from);
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed),
             written = atomic_load_explicit(&ring->written, memory_order_acquire);
    size_t ready = (size_t)(written - read), moved = bytes < ready ? bytes : ready;
    ring_copy(ring, rings->room, read, data, moved, false);
    atomic_store_explicit(&ring->read, read + moved, memory_order_release);
    return moved;
}
