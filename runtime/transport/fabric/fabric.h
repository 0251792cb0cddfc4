/* Ranks that met through a file (transport/meet/rendezvous.h): a socket between every two, and
 * shared memory between those of one machine.
 */
#ifndef TRANSPORT_FABRIC_FABRIC_H
#define TRANSPORT_FABRIC_FABRIC_H

#include "transport/fabric/queues.h"
#include "transport/post.h"

#include <stdbool.h>

/* Whether the ranks of this program are connected so. */
bool fabric_active(void);

/* Carries out transfers; ends the program when nothing moves for the time of HETU_TIMEOUT, too. */
void fabric_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count);

/* ---- lanes of messages ---- */

/* Lanes of messages (transport/post.h) between ranks that met through a file: for every lane a
 * stream of frames each way between every two ranks, in shared memory or on a socket of its own.
 *
 * Who receives says so first, and who sends waits for that; so whatever comes can be put where it
 * belongs at once, and a message that is not asked for yet holds up no other.
 */

/* The ranks as fabric.c knows them. */
typedef struct ChannelGround {
    int rank, size;
    const int *node_rank;   // by rank: its place in shared memory; -1: on another machine
    const uint64_t *node;   // by rank
    Queues *(*share)(void); // new queues between the ranks of this machine; NULL: there is no
                            // shared memory; all ranks together
    void (*gather)(const void *mine, size_t bytes, void *all);
    void (*fail_gone)(int rank); // ends the program
} ChannelGround;

/* All ranks together. */
void fabric_channels_open(const ChannelGround *ground);
void fabric_channels_close(void);

/* In a child process: gives up its copies of the connections. */
void fabric_channels_forget(void);

void fabric_post_begin(int lane, Post *post);
bool fabric_post_done(int lane, Post *post);

#endif
