/* MPI: starting and ending it, calls that are checked, and the control channel of a session.
 *
 * Conversions between layouts run on MPI_COMM_WORLD (comm/reshard.c). Commands, feeds, fetches and checks run on a communicator of their
 * own, named "hetu control", so that a tool that counts traffic can tell them apart. A process that was not launched by MPI and needs one
 * rank only never initialises MPI.
 */
#ifndef COMM_MPI_H
#define COMM_MPI_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* Ends the program with a message when an MPI call fails. */
#define HT_MPI(call) ht_mpi_check((call), #call, __FILE__, __LINE__)
void ht_mpi_check(int code, const char *call, const char *file, int line);

/* Whether the environment says that mpirun, srun or another launcher started this process. */
bool ht_mpi_launched(void);

/* Initialises MPI where the process was launched by it; else the process is rank 0 of 1. */
void ht_mpi_open(int *argc, char ***argv);
void ht_mpi_close(void);

/* Whether MPI is initialised and not finalised. */
bool ht_mpi_active(void);

/* This rank, all ranks, and the ranks on this node. */
int ht_mpi_rank(void);
int ht_mpi_size(void);
int ht_mpi_node_size(void);

/* The control communicator. */
MPI_Comm ht_mpi_control(void);

/* On the control communicator: from rank 0 to all; between two ranks. Any number of bytes. */
void ht_mpi_broadcast(void *data, size_t bytes);
void ht_mpi_send(const void *data, size_t bytes, int to);
void ht_mpi_receive(void *data, size_t bytes, int from);

/* Ends all ranks with status 1. */
_Noreturn void ht_mpi_abort(void);

#endif
