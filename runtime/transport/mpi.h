/* MPI: calls that are checked. What the ranks are to each other beside conversions is
 * transport/world.h.
 *
 * Conversions between layouts run on MPI_COMM_WORLD (exchange/mpi.c). Commands, feeds, fetches and
 * checks run on a communicator of their own, named "hetu control", so that a tool that counts
 * traffic can tell them apart. A process that was not launched by MPI and needs one rank only never
 * initialises MPI.
 */
#ifndef TRANSPORT_MPI_H
#define TRANSPORT_MPI_H

#include "transport/transfer.h"

#include <mpi.h>

/* Ends the program with a message when an MPI call fails. */
#define HT_MPI(call) ht_mpi_check((call), #call, __FILE__, __LINE__)
void ht_mpi_check(int code, const char *call, const char *file, int line);

/* Carries out transfers between ranks of a communicator, in parts that MPI can count. */
void mpi_exchange(MPI_Comm comm, const HostTransfer *sends, int send_count,
                  const HostTransfer *receives, int receive_count);

#endif
