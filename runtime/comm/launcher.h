/* What the launcher of this process says in the environment: HETU_RANK and HETU_SIZE, or what torchrun, mpirun and srun set. */
#ifndef COMM_LAUNCHER_H
#define COMM_LAUNCHER_H

#include <stdbool.h>

typedef struct Launch {
    int rank, size;
    int local;       // this rank among those of its machine; -1: unknown
    bool one_node;   // the launcher says that all ranks are on this machine
    char path[1024]; // of the file through which the ranks meet; "": unknown
} Launch;

/* Reads the environment. False when no launcher is known there, or when it started one process alone. Ends the program with a message where
 * it contradicts itself. */
bool launch_find(Launch *launch);

#endif
