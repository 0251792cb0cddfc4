#define _GNU_SOURCE
#include "transport/rings.h"

#include <hetu/kernel.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
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

/* What stands in front of the rings that a rank reads. */
typedef struct RingsHead {
    _Alignas(LINE) uint64_t key;
} RingsHead;

struct Rings {
    int rank, count, file;
    uint64_t key;
    size_t room;
    char **from; // by rank: the head and the rings that it reads, by the rank that writes them
};

static size_t ring_bytes(const Rings *rings) { return sizeof(Ring) + rings->room; }

static size_t all_bytes(const Rings *rings) { return sizeof(RingsHead) + ring_bytes(rings) * (size_t)rings->count; }

static Ring *ring_at(const Rings *rings, int reader, int writer)
{
    return (Ring *)(rings->from[reader] + sizeof(RingsHead) + ring_bytes(rings) * (size_t)writer);
}

/* Maps a rank's rings; NULL when that cannot be. */
static char *map_rings(const Rings *rings, int file)
{
    struct stat about;
    if (file < 0 || fstat(file, &about) || about.st_size != (off_t)all_bytes(rings))
        return NULL;
    void *memory = mmap(NULL, all_bytes(rings), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t choose_room(int count)
{
    size_t room = MOST_ROOM;
    while (room > LEAST_ROOM && room * (size_t)count * (size_t)count > ALL_ROOM)
        room /= 2;
    return room;
}

Rings *rings_create(int rank, int count)
{
    Rings *rings = calloc(1, sizeof *rings);
    char **from = calloc((size_t)count, sizeof *from);
    if (!rings || !from)
        ht_fail("no memory to connect %d ranks", count);
    *rings = (Rings){.rank = rank, .count = count, .room = choose_room(count), .from = from};
    rings->file = memfd_create("hetu-rings", MFD_CLOEXEC);
    if (rings->file < 0 || posix_fallocate(rings->file, 0, (off_t)all_bytes(rings)) ||
        getrandom(&rings->key, sizeof rings->key, 0) != sizeof rings->key)
        return rings;
    from[rank] = map_rings(rings, rings->file);
    if (from[rank])
        ((RingsHead *)from[rank])->key = rings->key;
    return rings;
}

RingFile rings_file(const Rings *rings) { return (RingFile){(int32_t)getpid(), rings->from[rings->rank] ? rings->file : -1, rings->key}; }

/* The rings of another rank; NULL when they cannot be had: of a process that this one may not see, or sees under another number. */
static char *open_rings(const Rings *rings, const RingFile *at)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)at->process, (int)at->file);
    int file = at->file < 0 ? -1 : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    char *memory = map_rings(rings, file);
    if (file >= 0)
        close(file);
    if (!memory || ((RingsHead *)memory)->key == at->key)
        return memory;
    munmap(memory, all_bytes(rings));
    return NULL;
}

bool rings_connect(Rings *rings, const RingFile *files)
{
    bool good = rings->from[rings->rank] != NULL;
    for (int other = 0; good && other < rings->count; other++)
        if (other != rings->rank)
            good = (rings->from[other] = open_rings(rings, &files[other])) != NULL;
    return good;
}

void rings_seal(Rings *rings)
{
    close(rings->file);
    rings->file = -1;
}

void rings_close(Rings *rings)
{
    for (int rank = 0; rings && rank < rings->count; rank++)
        if (rings->from[rank])
            munmap(rings->from[rank], all_bytes(rings));
    if (rings && rings->file >= 0)
        close(rings->file);
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
