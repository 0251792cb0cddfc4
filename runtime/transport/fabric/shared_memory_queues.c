/* Ring buffers in shared memory; MOST_ROOM and ALL_ROOM limit their sizes. */
#include "transport/fabric/shared_memory_queues.h"

#include "base/memory.h"
#include "transport/fabric/peer_memory.h"

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
    LINE = 64,            // bytes of a cache line
    MOST_ROOM = 1 << 18,  // most bytes of a queue
    LEAST_ROOM = 1 << 12, // least bytes of a queue
    ALL_ROOM = 32 << 20   // bytes that all queues of a machine may take
};

/* A ring buffer of `room` bytes: [read, written) of the stream, byte n at index n modulo `room`.
 * The reader has answered the offers 1 to `answered`: it refused those from `refused` on (0: none)
 * and took the others. */
typedef struct Queue {
    _Alignas(LINE) _Atomic uint64_t written;
    _Alignas(LINE) _Atomic uint64_t read;
    _Alignas(LINE) _Atomic uint64_t answered, refused;
    _Alignas(LINE) char data[];
} Queue;

/* Header of the memory with the queues that a rank reads. */
typedef struct QueuesHead {
    _Alignas(LINE) uint64_t key;
} QueuesHead;

struct Queues {
    int rank, count, file;
    uint64_t key;
    size_t room;
    char **from;       // by rank: memory that the rank reads, with one queue for each writing rank
    pid_t *process;    // by rank
    uint64_t *offered; // by rank: number of offers made to it
};

static size_t queue_bytes(const Queues *queues) { return sizeof(Queue) + queues->room; }

static size_t all_bytes(const Queues *queues) {
    return sizeof(QueuesHead) + queue_bytes(queues) * (size_t)queues->count;
}

static Queue *queue_at(const Queues *queues, int reader, int writer) {
    return (Queue *)(queues->from[reader] + sizeof(QueuesHead) +
                     queue_bytes(queues) * (size_t)writer);
}

/* Maps the memory of a rank; returns NULL on failure. */
static char *map_queues(const Queues *queues, int file) {
    struct stat about;
    if (file < 0 || fstat(file, &about) || about.st_size != (off_t)all_bytes(queues)) return NULL;
    void *memory = mmap(NULL, all_bytes(queues), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static size_t choose_room(int count) {
    size_t room = MOST_ROOM;
    while (room > LEAST_ROOM && room * (size_t)count * (size_t)count > ALL_ROOM) room /= 2;
    return room;
}

Queues *queues_create(int rank, int count) {
    Queues *queues = memory_array(1, sizeof *queues);
    char **from = memory_array(count, sizeof *from);
    *queues = (Queues){.rank = rank, .count = count, .room = choose_room(count), .from = from};
    queues->process = memory_array(count, sizeof *queues->process);
    queues->offered = memory_array(count, sizeof *queues->offered);
    queues->file = memfd_create("hetu-queues", MFD_CLOEXEC);
    if (queues->file < 0 || posix_fallocate(queues->file, 0, (off_t)all_bytes(queues)) ||
        getrandom(&queues->key, sizeof queues->key, 0) != sizeof queues->key)
        return queues;
    from[rank] = map_queues(queues, queues->file);
    if (from[rank]) ((QueuesHead *)from[rank])->key = queues->key;
    return queues;
}

QueueFile queues_file(const Queues *queues) {
    char *head = queues->from[queues->rank];
    return (QueueFile){.process = (int32_t)getpid(),
                       .file = head ? queues->file : -1,
                       .parent = (int32_t)getppid(),
                       .key = queues->key,
                       .head = (uintptr_t)head};
}

void queues_permit(const Queues *queues, const QueueFile *files) {
    pid_t *processes = memory_array(queues->count, 2 * sizeof *processes),
          *parents = processes + queues->count;
    for (int rank = 0; rank < queues->count; rank++) {
        processes[rank] = files[rank].process;
        parents[rank] = files[rank].parent;
    }
    peer_memory_permit(processes, parents, queues->count, queues->rank);
    free(processes);
}

/* Maps the memory of another rank. Returns NULL if this process does not see that process, or sees
 * it under another process number (another container). */
static char *open_queues(const Queues *queues, const QueueFile *at) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)at->process, (int)at->file);
    int file = at->file < 0 ? -1 : open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    char *memory = map_queues(queues, file);
    if (file >= 0) close(file);
    if (!memory || ((QueuesHead *)memory)->key == at->key) return memory;
    munmap(memory, all_bytes(queues));
    return NULL;
}

/* Refuses all offers of a rank if the key in its memory cannot be read. */
static void probe_memory(Queues *queues, int other, const QueueFile *at) {
    uint64_t key = 0;
    queues->process[other] = at->process;
    if (!peer_memory_read(at->process, at->head, &key, sizeof key) || key != at->key)
        atomic_store(&queue_at(queues, queues->rank, other)->refused, 1);
}

bool queues_connect(Queues *queues, const QueueFile *files) {
    if (!queues->from[queues->rank]) return false;
    for (int other = 0; other < queues->count; other++) {
        if (other == queues->rank) continue;
        queues->from[other] = open_queues(queues, &files[other]);
        if (!queues->from[other]) return false;
        probe_memory(queues, other, &files[other]);
    }
    return true;
}

void queues_seal(Queues *queues) {
    close(queues->file);
    queues->file = -1;
}

void queues_close(Queues *queues) {
    for (int rank = 0; queues && rank < queues->count; rank++)
        if (queues->from[rank]) munmap(queues->from[rank], all_bytes(queues));
    if (queues && queues->file >= 0) close(queues->file);
    if (queues) {
        free(queues->from);
        free(queues->process);
        free(queues->offered);
    }
    free(queues);
}

/* A range of the ring in two parts: up to the ring's end, and from its start. */
typedef struct Span {
    char *part[2];
    size_t bytes[2];
} Span;

/* Returns the parts of the ring for `bytes` bytes of the stream, the first of which is `at`. */
static Span span_of(Queue *queue, size_t room, uint64_t at, size_t bytes) {
    size_t first = room - (size_t)(at % room), head = first < bytes ? first : bytes;
    return (Span){{queue->data + at % room, queue->data}, {head, bytes - head}};
}

size_t queue_put(Queues *queues, int to, const void *data, size_t bytes) {
    Queue *queue = queue_at(queues, to, queues->rank);
    uint64_t written = atomic_load_explicit(&queue->written, memory_order_relaxed),
             read = atomic_load_explicit(&queue->read, memory_order_acquire);
    size_t free_bytes = queues->room - (size_t)(written - read),
           moved = bytes < free_bytes ? bytes : free_bytes;
    Span span = span_of(queue, queues->room, written, moved);
    memcpy(span.part[0], data, span.bytes[0]);
    memcpy(span.part[1], (const char *)data + span.bytes[0], span.bytes[1]);
    atomic_store_explicit(&queue->written, written + moved, memory_order_release);
    return moved;
}

size_t queue_get(Queues *queues, int from, void *data, size_t bytes) {
    Queue *queue = queue_at(queues, queues->rank, from);
    uint64_t read = atomic_load_explicit(&queue->read, memory_order_relaxed),
             written = atomic_load_explicit(&queue->written, memory_order_acquire);
    size_t ready = (size_t)(written - read), moved = bytes < ready ? bytes : ready;
    Span span = span_of(queue, queues->room, read, moved);
    memcpy(data, span.part[0], span.bytes[0]);
    memcpy((char *)data + span.bytes[0], span.part[1], span.bytes[1]);
    atomic_store_explicit(&queue->read, read + moved, memory_order_release);
    return moved;
}

/* ---- single copies ---- */

bool queue_takes_offers(const Queues *queues, int to) {
    return !atomic_load_explicit(&queue_at(queues, to, queues->rank)->refused,
                                 memory_order_acquire);
}

uint64_t queue_offer(Queues *queues, int to) { return ++queues->offered[to]; }

OfferState queue_offer_state(const Queues *queues, int to, uint64_t offer) {
    Queue *queue = queue_at(queues, to, queues->rank);
    uint64_t answered = atomic_load_explicit(&queue->answered, memory_order_acquire),
             refused = atomic_load_explicit(&queue->refused, memory_order_acquire);
    if (refused && offer >= refused) return OFFER_REFUSED;
    return answered >= offer ? OFFER_TAKEN : OFFER_OPEN;
}

bool queue_take(Queues *queues, int from, uint64_t address, void *data, size_t bytes) {
    Queue *queue = queue_at(queues, queues->rank, from);
    uint64_t offer = atomic_load_explicit(&queue->answered, memory_order_relaxed) + 1;
    bool takes = !atomic_load_explicit(&queue->refused, memory_order_relaxed) &&
                 peer_memory_read(queues->process[from], address, data, bytes);
    if (!takes && !atomic_load_explicit(&queue->refused, memory_order_relaxed))
        atomic_store_explicit(&queue->refused, offer, memory_order_release);
    atomic_store_explicit(&queue->answered, offer, memory_order_release);
    return takes;
}
