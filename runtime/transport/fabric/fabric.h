/* Ranks that met through a file (transport/meet/rendezvous.h): a socket between every two, and
 * shared memory between those of one machine.
 */
#ifndef TRANSPORT_FABRIC_FABRIC_H
#define TRANSPORT_FABRIC_FABRIC_H

#include "transport/transfer.h"

#include <stdbool.h>

/* Whether the ranks of this program are connected so. */
bool fabric_active(void);

/* Carries out transfers; ends the program when nothing moves for the time of HETU_TIMEOUT, too. */
void fabric_exchange(const HostTransfer *sends, int send_count, const HostTransfer *receives,
                     int receive_count);

#endif
