/* The ranks of a program, and small messages between them: commands, feeds, fetches, checks.
 *
 * MPI connects ranks that mpirun or srun started. Ranks of other launchers find each other
 * by a rendezvous file (transport/meet). Without a launcher, a process is rank 0 of 1. A function
 * that moves data ends the program with a message if a rank is gone. */
#pragma once

#include "transport/transfer.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* world_open connects the ranks; world_close ends the connections. Before and after, the process is
 * rank 0 of 1. All ranks call both together. `use` has bits: WORLD_HEARTBEAT starts heartbeats
 * between the ranks (transport/watchdog/watchdog.h); WORLD_CHANNELS prepares for channels_open,
 * whose lanes other threads use (transport/post.h). */
typedef enum WorldUse { WORLD_PLAIN = 0, WORLD_HEARTBEAT = 1, WORLD_CHANNELS = 2 } WorldUse;
void world_open(int *argc, char ***argv, int use);
void world_close(void);

/* Return this rank and the number of ranks, first in the program, then on this rank's host. */
int world_rank(void);
int world_size(void);
int world_node_rank(void);
int world_node_size(void);

/* Makes a forked child process rank 0 of 1, which does not communicate. */
void world_forget(void);

/* world_broadcast sends `bytes` bytes from rank 0 to all ranks. world_gather is an all-gather:
 * `all` receives `bytes` bytes of every rank, in rank order. */
void world_broadcast(void *data, size_t bytes);
void world_gather(const void *mine, size_t bytes, void *all);

/* Carries out transfers (transport/transfer.h) between different ranks. All ranks call it. */
void world_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                    int receive_count);

/* Receives the bytes that world_collect brings to rank 0. */
typedef struct Collector {
    int64_t unit; // data are cut into pieces at multiples of this number of bytes
    void (*take)(int rank, const void *data, int64_t bytes, void *argument);
    void *argument; // last argument of `take`
} Collector;

/* Sends each rank's `bytes` bytes, whose number may differ by rank, to rank 0. Rank 0 passes them,
 * in the order of the ranks, piece by piece to collector->take. All ranks call it together. */
void world_collect(const void *mine, int64_t bytes, const Collector *collector);

/* Receives a world_broadcast on ranks other than 0, without a time limit. */
void world_await(void *data, size_t bytes);

/* Returns the minimum of `mine` over all ranks (an all-reduce, which is also a barrier). */
int world_least(int mine);

/* Ends the program with a message if another rank has died. Waiting loops call it. */
void world_check(void);

/* Prepares the early end of this rank. Removes the files of an unfinished rendezvous, and kills
 * stopped ranks of this machine. Under a launcher that ends all ranks when one is gone, waits until
 * this rank may end: for a signal of the launcher, unless one has already come (`told`). */
void world_leave(bool told);

#ifdef __cplusplus
}
#endif
