/* Queues in shared memory: every two ranks of a machine have a byte queue in each direction. The
 * memory is a memfd without a path, so no file can be left behind. Other ranks open it through
 * /proc/PID/fd of the rank that created it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Queues Queues;

/* Tells other ranks where to open the memory with the queues that a rank reads. */
typedef struct QueueFile {
    int32_t process, file; // process number and file descriptor; file -1: there are no queues
    uint64_t key;          // also in the memory's header, to recognize the memory
} QueueFile;

/* Creates the queues that this rank reads. `rank`: its index among the machine's `count` ranks. */
Queues *queues_create(int rank, int count);
QueueFile queues_file(const Queues *queues);

/* Opens the queues of all other ranks, by index on the machine. False: some cannot be opened. */
bool queues_connect(Queues *queues, const QueueFile *files);

/* Closes the memfd, once all ranks are connected. */
void queues_seal(Queues *queues);

void queues_close(Queues *queues);

/* Copy without waiting to or from a rank (index on this machine). Return the bytes copied. */
size_t queue_put(Queues *queues, int to, const void *data, size_t bytes);
size_t queue_get(Queues *queues, int from, void *data, size_t bytes);
