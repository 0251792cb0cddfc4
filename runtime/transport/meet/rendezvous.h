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
 * has replaced it. If only this machine sees the file, the ranks listen on the loopback. */
#pragma once

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
    bool spread;     // the launcher says that ranks are on several machines
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

/* Starts a process that kills mpirun, or mpirun's daemon on this machine, if that still lives in
 * some seconds. Call it when a rank beyond a broken link is given up: the daemons wait for each
 * other for ever then. Does nothing under other launchers. */
void launch_guard(void);

/* ---- processes ---- */

/* These functions find the processes of this run on this machine in /proc, by the launcher's
 * variables in their environments. So they also find processes that have not connected yet. */

/* Returns whether a process is alive, stopped or not. Exiting processes and zombies are dead. */
bool peers_process_lives(int process);

/* Writes the stopped ranks to `list`: "rank 2 (process 4711)", or "". Returns their number. */
int peers_stopped(char *list, size_t size);

/* Kills the stopped ranks, and waits until they are dead. */
void peers_end_stopped(void);

/* ---- the meeting ---- */

/* The connections of this rank after the rendezvous. */
typedef struct Meeting {
    int *socket;    // by rank; -1 for this rank
    uint64_t *node; // by rank: identifier, equal for ranks that share memory
} Meeting;

/* Connects every two ranks. Ends the program if some do not come in `seconds` (0: no limit). */
Meeting rendezvous_meet(const Launch *launch, int seconds);

/* Removes the files of an unfinished rendezvous on this machine. */
void rendezvous_abandon(void);

/* ---- ranks of this machine without a launcher (start_local_ranks.c) ---- */

/* Starts the other ranks of a program that was started by itself, without a launcher.
 *
 *     ./model            rank 0: goes on, prints, reads the standard input
 *      +- ./model        ranks 1 to 3: the same command, standard output to /dev/null;
 *      +- ./model        they end when rank 0 ends, even when it is killed
 *      +- ./model
 *
 * The ranks find each other like the ranks of heturun (transport/meet/rendezvous.h). */

/* Starts ranks 1 to count - 1 and makes this process rank 0 of `count`. Ends the program if a
 * process or the folder where the ranks meet cannot be created. */
void local_ranks_start(int count);

/* Call it when the ranks have met: from now on not a thread but the transport finds ended ranks. */
void local_ranks_met(void);

/* Waits until the started ranks have ended; kills those that do not end within some seconds. */
void local_ranks_close(void);

/* Forgets the started ranks without waiting for them, in a forked child process. */
void local_ranks_forget(void);
