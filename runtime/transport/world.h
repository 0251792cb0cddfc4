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
#include <stdint.h>

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

/* Return this rank, the number of ranks, this rank's number on its host, and the number of ranks on
 * that host. */
int world_rank(void);
int world_size(void);
int world_node_rank(void);
int world_node_size(void);

/* Makes a forked child process rank 0 of 1, without communication. */
void world_forget(void);

/* world_broadcast sends `bytes` bytes from rank 0 to all. world_gather is an all-gather: `all`
 * receives `bytes` bytes of every rank, in rank order. */
void world_broadcast(void *data, size_t bytes);
void world_gather(const void *mine, size_t bytes, void *all);

/* Carries out transfers (transport/transfer.h), none of them to this rank itself; all ranks
 * together. */
void world_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                    int receive_count);

/* Receives the pieces of all ranks' bytes that world_collect brings to rank 0. */
typedef struct Collector {
    int64_t unit; // bytes; pieces end at multiples of it
    void (*take)(int rank, const void *data, int64_t bytes, void *argument);
    void *argument; // of `take`
} Collector;

/* Brings the `bytes` bytes of every rank, as many as each has, to rank 0 in the order of the ranks.
 * Rank 0 gets one piece at a time. All ranks together. */
void world_collect(const void *mine, int64_t bytes, const Collector *collector);

/* Receives a world_broadcast on ranks other than 0, without a time limit. */
void world_await(void *data, size_t bytes);

/* Returns the minimum of `mine` over all ranks (an all-reduce, which is also a barrier). */
int world_least(int mine);

/* Ends the program with a message if another rank has died. Loops that wait for something else call
 * world_check. */
void world_check(void);

/* Returns the timeout for other ranks in seconds (transport/watch/watch.h): HETU_TIMEOUT, by
 * default 600; 0: none. */
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
