/* How ranks without MPI meet.
 *
 * Rank 0 listens and writes where to a file (transport/meet/invitation.h); the others read it,
 * connect, and get the places of all. Then every two ranks are connected, and the file is gone. Who
 * connects presents a random key from the file, which this user alone may read, and rank 0 answers
 * with another one; so a file of an earlier run leads nowhere, whoever listens there now: whoever
 * reads it tries again until rank 0 has replaced it. Where only this machine sees the file, the
 * ranks listen on the loopback alone.
 */
#ifndef TRANSPORT_MEET_RENDEZVOUS_H
#define TRANSPORT_MEET_RENDEZVOUS_H

#include "transport/meet/launcher.h"

#include <stdint.h>

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
