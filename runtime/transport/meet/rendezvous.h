/* The rendezvous of ranks without MPI.
 *
 *     rank 0                                  ranks 1, 2, ...
 *     listens, writes its address and         read the file (rendezvous_file.h)
 *     a random key to a file                  connect and present the key
 *     answers with another key and the        check rank 0's key
 *     addresses of all ranks                  connect to all lower ranks
 *     removes the file
 *
 * Only this user can read the file. The keys protect against other users' processes, and against
 * the address of an earlier run: a rank without a right answer reads the file again until rank 0
 * has replaced it. If only this machine sees it, the ranks listen on the loopback interface. */
#ifndef TRANSPORT_MEET_RENDEZVOUS_H
#define TRANSPORT_MEET_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the launcher ---- */

/* The launcher's information for this process, from the environment: HETU_RANK and HETU_SIZE, or
 * the variables of torchrun, mpirun or srun. */
typedef struct Launch {
    int rank, size;
    int local;       // this rank's number on its machine; -1: unknown
    bool one_node;   // all ranks are on this machine
    char path[1024]; // path of the rendezvous file that the user chose (HETU_RENDEZVOUS); "": none
    char run[256];   // identifies this launch on this machine; "": unknown
} Launch;

/* Returns whether a launcher started this process, even as the only rank. */
bool launch_present(void);

/* Reads the environment. Returns false if there is no launcher, or it started one process only.
 * Ends the program with a message if the variables contradict each other. */
bool launch_find(Launch *launch);

/* Returns whether a process with this environment ("NAME=VALUE" strings, each ended by a null byte)
 * belongs to the same launch, and sets *rank. */
bool launch_shares(const char *environment, size_t length, int *rank);

/* ---- processes ---- */

/* These functions find the processes of this run on this machine in /proc, by the launcher's
 * variables in their environments. So they also find processes that have not connected yet. */

/* Returns whether a process is alive, stopped or not. An exiting one, or a zombie, is not. */
bool peers_process_lives(int process);

/* Writes to `list` which ranks of this run are stopped (SIGSTOP, a debugger): "rank 2 (process
 * 4711)", or "". Returns how many. */
int peers_stopped(char *list, size_t size);

/* Kills the stopped ranks, and waits until they are dead. */
void peers_end_stopped(void);

/* ---- the meeting ---- */

/* The connections of this rank after the rendezvous. */
typedef struct Meeting {
    int *socket;    // by rank; -1 for this rank
    uint64_t *node; // by rank: identifier, equal for ranks that share memory
} Meeting;

/* Waits for all ranks. Ends the program if some do not come within `seconds` (0: no limit). */
Meeting rendezvous_meet(const Launch *launch, int seconds);

/* Removes the files of an unfinished rendezvous on this machine. */
void rendezvous_abandon(void);

#endif
