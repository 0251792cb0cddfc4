/* The ranks of a program, and small host data between them: commands, feeds, fetches, checks.
 *
 * mpirun or srun start the ranks and MPI connects them; or any launcher does, and they meet through
 * a file (transport/meet/rendezvous.h). A process that nobody launched is rank 0 of 1. Every
 * function that moves data ends the program with a message when a rank is gone.
 */
#ifndef TRANSPORT_WORLD_H
#define TRANSPORT_WORLD_H

#include "transport/transfer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Connects the ranks; before it, and after world_close, the process is rank 0 of 1. All ranks call
 * both together. With a pulse the ranks hear of each other all the time (transport/watch/watch.h);
 * without one they exchange nothing but what the caller asks for. With lanes, threads of a rank may
 * exchange messages of their own (transport/post.h). */
typedef enum WorldUse { WORLD_PLAIN = 0, WORLD_PULSE = 1, WORLD_CHANNELS = 2 } WorldUse;
void world_open(int *argc, char ***argv, int use);
void world_close(void);

/* This rank, all ranks, this rank among those of its machine, and how many these are. */
int world_rank(void);
int world_size(void);
int world_node_rank(void);
int world_node_size(void);

/* In a child process that this one forks: it is no rank, and is alone. */
void world_forget(void);

/* Any number of bytes from rank 0 to all; `bytes` of every rank to all, in the order of the
 * ranks. */
void world_broadcast(void *data, size_t bytes);
void world_gather(const void *mine, size_t bytes, void *all);

/* Carries out transfers (transport/transfer.h), none of them to this rank itself; all ranks
 * together. */
void world_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                    int receive_count);

/* On other ranks than 0: world_broadcast of what rank 0 sends when it likes; no time limit
 * holds. */
void world_await(void *data, size_t bytes);

/* The least of all ranks' numbers; no rank gets it before all have come here. */
int world_least(int mine);

/* Ends the program with a message when another rank is gone; for loops that wait for something
 * else. */
void world_check(void);

/* Seconds that a rank waits for others (transport/watch/watch.h): environment HETU_TIMEOUT, else
 * 600; 0: for ever. */
int world_timeout(void);

/* For a rank that ends before its time, because it was told to by a signal, or together with
 * others: removes what the coming together of the ranks has left behind when it is not done, and
 * ends ranks of this machine that are stopped and could not end with it. Where a launcher ends all
 * ranks when one is gone, it returns when this one may end. */
void world_leave(bool told);

#ifdef __cplusplus
}
#endif

#endif
