/* Shared memory between ranks of one machine: for every two of them a queue of bytes each way. The
 * memory has no name in any folder, so nothing of it can stay behind; the others open it through
 * the process that made it. */
#ifndef TRANSPORT_FABRIC_QUEUES_H
#define TRANSPORT_FABRIC_QUEUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Queues Queues;

/* Where the others find the queues that a rank reads. */
typedef struct QueueFile {
    int32_t process, file; // file: -1: there are none
    uint64_t key;          // stands in them
} QueueFile;

/* Makes the queues of this rank among `count` ranks of the machine. */
Queues *queues_create(int rank, int count);
QueueFile queues_file(const Queues *queues);

/* Opens those of the others, by rank of the machine; false when some cannot be. */
bool queues_connect(Queues *queues, const QueueFile *files);

/* When all are connected: from now on nobody can open them. */
void queues_seal(Queues *queues);

void queues_close(Queues *queues);

/* Moves what can be moved now to or from a rank of this machine; returns the bytes. */
size_t queue_put(Queues *queues, int to, const void *data, size_t bytes);
size_t queue_get(Queues *queues, int from, void *data, size_t bytes);

#endif
