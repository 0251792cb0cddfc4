/* The watch of a rank over the others: a thread that ends this rank when others keep it waiting for
 * longer than HETU_TIMEOUT says, whatever the main thread is held in: a call of MPI, a socket, a
 * device.
 *
 * Three rules, from the first call on:
 *
 *     until all ranks have come together     that may take the time of HETU_TIMEOUT
 *     in a wait (watch_begin, watch_end)     nothing may move for that time
 *     all the time                           no rank may be without a pulse
 *                                            (transport/watch/pulse.h) for that time: stopped, or
 *                                            out of
 * reach
 *
 * A rank that computes, or whose main does something else, has a pulse and may take as long as it
 * likes while no one waits for it; the ranks that wait for rank 0's next command are in no wait.
 * Rank 0 decides and tells all the same: who keeps the others waiting. Ranks of this run that are
 * stopped are killed, wherever another rank of their machine ends. Time is counted in wakings of
 * the thread, so what stops a whole machine, or all ranks, stops it, too.
 */
#ifndef TRANSPORT_WATCH_WATCH_H
#define TRANSPORT_WATCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Before the ranks come together; when they have; and when this rank has nothing to do with others
 * any more. The last waits on rank 0 until all others have ended. Without a pulse each rank counts
 * its own waits alone. */
void watch_open(void);
void watch_connect(bool pulse);
void watch_close(void);

/* Around what other ranks may hold up; may be nested. These make no system call. */
void watch_begin(void);
void watch_end(void);

/* Within a wait: something has moved. */
void watch_moved(void);

/* Tells rank 0, with the next pulse, that this rank failed at a task that all ranks carry out
 * beside the training: its number, which grows from task to task, and an errno; or a negative
 * number where another rank may know more. From any thread. */
void watch_report(int task, int error);

/* On rank 0: the error of a rank that failed at a task, and which; 0 where none has said so. */
int watch_reported(int task, int *rank);

/* For a rank that finds another one gone: lets the watch speak first, which may know of a rank
 * whose end began it. */
void watch_settle(void);

/* In a child process, which is no rank. */
void watch_forget(void);

/* ---- processes ---- */

/* The processes of this run on this machine, as /proc shows them: found by what their launcher put
 * into their environment, so also those that have not come as far as to connect to anybody. */

/* Whether a process lives, stopped or not: it is neither gone, nor on its way out, nor waits to be
 * buried. */
bool peers_process_lives(int process);

/* Writes to `list` which ranks of this run are stopped (SIGSTOP, a debugger): "rank 2 (process
 * 4711)", or "". Returns how many. */
int peers_stopped(char *list, size_t size);

/* Kills these, which could not end by themselves, and waits until they are dead. */
void peers_end_stopped(void);

#ifdef __cplusplus
}
#endif

#endif
