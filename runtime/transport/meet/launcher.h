/* What the launcher of this process says in the environment: HETU_RANK and HETU_SIZE, or what
 * torchrun, mpirun and srun set. */
#ifndef TRANSPORT_MEET_LAUNCHER_H
#define TRANSPORT_MEET_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

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

/* Returns whether a launcher started this process, also as the only rank. */
bool launch_present(void);

/* Whether a process with this environment ("NAME=VALUE" in a row, each ended by a null byte) was
 * started by the same launch; its rank. */
bool launch_shares(const char *environment, size_t length, int *rank);

#endif
