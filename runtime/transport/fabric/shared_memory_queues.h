/* Queues in shared memory: every two ranks of a machine have a byte queue in each direction. The
 * memory is a memfd without a path, so no file can be left behind. Other ranks open it through
 * /proc/PID/fd of the rank that created it.
 *
 * A large message takes one copy: its sender offers the address, and the receiver reads there.
 *
 *     sender     offer 5 = queue_offer;  puts "offer 5 at 0x7f20..." into the queue  ──▶  receiver
 *                queue_offer_state: OPEN
 *                TAKEN: the memory is free again   ◀──   queue_take
 *
 * The receiver takes offers in order. The first that fails is refused, as are all later ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Queues Queues;

/* Tells other ranks where to open the memory with the queues that a rank reads. */
typedef struct QueueFile {
    int32_t process, file; // process number and file descriptor; file -1: there are no queues
    int32_t parent;        // process number of the parent
    uint64_t key, head;    // random key, and address of the memory, which begins with the key
} QueueFile;

/* Creates the queues that this rank reads. `rank`: its index among the machine's `count` ranks. */
Queues *queues_create(int rank, int count);
QueueFile queues_file(const Queues *queues);

/* Permits the other ranks to read this rank's memory. All ranks call it before queues_connect. */
void queues_permit(const Queues *queues, const QueueFile *files);

/* Opens the queues of all other ranks, by index on the machine, and refuses all offers of ranks
 * whose memory this rank cannot read. False: some queues cannot be opened. */
bool queues_connect(Queues *queues, const QueueFile *files);

/* Closes the memfd, once all ranks are connected. */
void queues_seal(Queues *queues);

void queues_close(Queues *queues);

/* Copy without waiting to or from a rank (index on this machine). Return the bytes copied. */
size_t queue_put(Queues *queues, int to, const void *data, size_t bytes);
size_t queue_get(Queues *queues, int from, void *data, size_t bytes);

/* Sizes of messages that are offered: a copy pays from LEAST bytes on. Up to MOST bytes it takes
 * less than a second, in which no rank reports progress to the watchdog. */
enum { SINGLE_COPY_LEAST = 1 << 16, SINGLE_COPY_MOST = 1 << 30 };
static inline bool queue_offers(size_t bytes) {
    return bytes >= SINGLE_COPY_LEAST && bytes <= SINGLE_COPY_MOST;
}
typedef enum OfferState { OFFER_OPEN, OFFER_TAKEN, OFFER_REFUSED } OfferState;

/* Returns whether a rank has refused no offer so far. */
bool queue_takes_offers(const Queues *queues, int to);

/* Returns the number of the next offer to a rank: 1, 2, 3, .... */
uint64_t queue_offer(Queues *queues, int to);
OfferState queue_offer_state(const Queues *queues, int to, uint64_t offer);

/* Takes the next offer of a rank: reads its memory. Returns false if the offer is refused. */
bool queue_take(Queues *queues, int from, uint64_t address, void *data, size_t bytes);
