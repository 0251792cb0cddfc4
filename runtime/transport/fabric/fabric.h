/* The fabric: transport between ranks without MPI, after their rendezvous (transport/meet). Every
 * two ranks have a socket; ranks of one machine share memory, too. */
#pragma once

#include "transport/fabric/shared_memory_queues.h"
#include "transport/post.h"

#include <stdbool.h>

/* Returns whether the ranks of this program use the fabric. */
bool fabric_active(void);

/* Carries out transfers. Ends the program if nothing moves for HETU_TIMEOUT. */
void fabric_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count);

/* ---- lanes of messages ---- */

/* Lanes of nonblocking messages (transport/post.h). Each lane has a stream of frames in each
 * direction between every two ranks, in shared memory or on its own socket.
 *
 *     receiver   ASK tag 7, 4096 bytes  ──▶   sender
 *                ◀──  DATA tag 7, 4096 bytes
 *
 * Rendezvous protocol: the receiver asks for a message, then the sender sends it. So all data go
 * directly to their destination, and a message without a receiver blocks no other. */

/* Services of fabric.c for the lanes. */
typedef struct ChannelGround {
    int rank, size;
    const int *node_rank; // by rank: index on this machine; -1: another machine
    const uint64_t *node; // by rank: identifier of its machine
    /* Creates queues between the ranks of this machine, or returns NULL. All ranks call it. */
    Queues *(*share)(void);
    void (*gather)(const void *mine, size_t bytes, void *all);
    void (*fail_gone)(int rank); // ends the program because a rank is gone
} ChannelGround;

/* Open and close the lanes. All ranks call them together. */
void fabric_channels_open(const ChannelGround *ground);
void fabric_channels_close(void);

/* Closes the connections in a forked child process. */
void fabric_channels_forget(void);

void fabric_post_begin(int lane, Post *post);
bool fabric_post_done(int lane, Post *post);
