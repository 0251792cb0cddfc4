/* Blocking messages between ranks.
 *
 * Sends and receives between two ranks, or of a rank with itself, match in order and must have
 * equal sizes. The transport (transport/mpi.h, transport/fabric/fabric.h) returns when all messages
 * are complete. The transport ends the program if a rank has died. */
#pragma once

#include <stddef.h>
#include <string.h>

/* A message of `bytes` bytes to or from a rank. */
typedef struct HostTransfer {
    void *data;
    size_t bytes;
    int rank;
} HostTransfer;

/* Copies the messages from this rank, `rank`, to itself. */
static inline void transfer_copy_own(int rank, const HostTransfer *sends, int send_count,
                                     const HostTransfer *receives, int receive_count) {
    int r = 0;
    for (int s = 0; s < send_count; s++) {
        if (sends[s].rank != rank) continue;
        while (r < receive_count && receives[r].rank != rank) r++;
        if (sends[s].bytes) memmove(receives[r].data, sends[s].data, sends[s].bytes);
        r++;
    }
}
