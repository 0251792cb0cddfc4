/* Messages that go between ranks at once.
 *
 * Transfers between two ranks meet in their order, and must have as many bytes on both sides; those
 * to a rank itself, too. What carries them out (transport/mpi.h, transport/fabric/fabric.h) returns
 * when all is done, and ends the program when a rank is gone.
 */
#ifndef TRANSPORT_TRANSFER_H
#define TRANSPORT_TRANSFER_H

#include <stddef.h>

/* A message of `bytes` bytes to or from a rank. */
typedef struct HostTransfer {
    void *data;
    size_t bytes;
    int rank;
} HostTransfer;

/* Copies the messages from this rank, `rank`, to itself. */
void transfer_copy_own(int rank, const HostTransfer *sends, int send_count,
                       const HostTransfer *receives, int receive_count);

#endif
