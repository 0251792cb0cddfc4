/* Ranks that met through a file (transport/rendezvous.h): a socket between every two, and shared memory between those of one machine. */
#ifndef TRANSPORT_MESH_H
#define TRANSPORT_MESH_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the ranks of this program are connected so. */
bool mesh_active(void);

/* Bytes that go to or come from a rank. */
typedef struct Transfer {
    void *data;
    size_t bytes;
    int rank;
} Transfer;

/* Sends and receives all at once; returns when all is done. Transfers between two ranks meet in their order, and must have as many bytes on
 * both sides; those to this rank itself too. Ends the program when a rank is gone, or when nothing moves for the time of HETU_TIMEOUT. */
void mesh_exchange(const Transfer *sends, int send_count, const Transfer *receives, int receive_count);

#endif
