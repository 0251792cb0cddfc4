/* How ranks without MPI meet.
 *
 * Rank 0 listens and writes where to a file that all ranks see; the others read it, connect, and get the places of all. Then every two
 * ranks are connected, and the file is gone. A file that an earlier run left behind leads nowhere: whoever reads it tries again until rank
 * 0 has replaced it. Connections present a random key from the file, which only this user may read.
 */
#ifndef COMM_RENDEZVOUS_H
#define COMM_RENDEZVOUS_H

#include "comm/launcher.h"

#include <stdint.h>

/* The ranks after they met. */
typedef struct Meeting {
    int *socket;    // by rank; -1 for this one
    uint64_t *node; // by rank: equal for ranks that share memory
    uint64_t key;   // of this run; the same on all ranks
} Meeting;

/* Waits for all ranks; ends the program when some do not come within `seconds` (0: waits for ever). */
Meeting rendezvous_meet(const Launch *launch, int seconds);

#endif
