/* How ranks without MPI meet.
 *
 * Rank 0 listens and writes where to a file (transport/meet/rendezvous_file.h); the others read it,
 * connect, and get the places of all. Then every two ranks are connected, and the file is gone. Who
 * connects presents a random key from the file, which this user alone may read, and rank 0 answers
 * with another one; so a file of an earlier run leads nowhere, whoever listens there now: whoever
 * reads it tries again until rank 0 has replaced it. Where only this machine sees the file, the
 * ranks listen on the loopback alone.
 */
#ifndef TRANSPORT_MEET_RENDEZVOUS_H
#define TRANSPORT_MEET_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the launcher ---- */

/* What the launcher of this process says in the environment: HETU_RANK and HETU_SIZE, or what
 * torchrun, mpirun and srun set. */
typedef struct Launch {
    int rank, size;
    int local;       // this rank among those of its machine; -1: unknown
    bool one_node;   // the launcher says that all ranks are on this machine
    char path[1024]; // of the file through which the ranks meet, as the user chose it; "": nobody
                     // chose
    char run[256];   // what tells this launch from others on this machine; "": unknown
} Launch;

/* Reads the environment. False when no launcher is known there, or when it started one process
 * alone. Ends the program with a message where it contradicts itself. */
bool launch_find(Launch *launch);

/* Whether a process with this environment ("NAME=VALUE" in a row, each ended by a null byte) was
 * started by the same launch; its rank. */
bool launch_shares(const char *environment, size_t length, int *rank);

/* ---- the meeting ---- */

/* The ranks after they met. */
typedef struct Meeting {
    int *socket;    // by rank; -1 for this one
    uint64_t *node; // by rank: equal for ranks that share memory
} Meeting;

/* Waits for all ranks; ends the program when some do not come within `seconds` (0: waits for
 * ever). */
Meeting rendezvous_meet(const Launch *launch, int seconds);

/* Removes what an unfinished meeting has left on this machine. */
void rendezvous_abandon(void);

#endif
