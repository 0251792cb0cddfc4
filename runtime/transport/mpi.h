/* MPI: checked calls, and the transport between ranks that MPI connects.
 *
 * Conversions between layouts run on MPI_COMM_WORLD (exchange/mpi.c). Commands, feeds, fetches and
 * checks run on a communicator of their own, "hetu control", so that tools that count traffic can
 * leave this traffic out. A process of one rank that MPI did not launch never initialises MPI. */
#pragma once

#include "transport/transfer.h"

#include <mpi.h>

/* Ends the program with a message if an MPI call fails. */
#define HT_MPI(call) ht_mpi_check((call), #call, __FILE__, __LINE__)
void ht_mpi_check(int code, const char *call, const char *file, int line);

/* Carries out transfers on a communicator, in parts whose sizes fit MPI's int. */
void mpi_exchange(MPI_Comm comm, const HostTransfer *sends, int send_count,
                  const HostTransfer *receives, int receive_count);
