/* The watchdog: a thread of each rank that ends the run when a rank has died or hangs.
 *
 *     while the ranks meet        the meeting may take HETU_TIMEOUT seconds (600)
 *     in a wait (between          the rank must progress within HETU_TIMEOUT
 *     watchdog_begin_wait and
 *     watchdog_end_wait)
 *     all the time                every rank must have a heartbeat within that time
 *                                 (heartbeat_messages.h)
 *
 * A rank that computes has a heartbeat, and may take any time while no other rank waits for it. The
 * wait for rank 0's next command has no time limit. Rank 0 finds which rank keeps the others
 * waiting, and all ranks print this. Stopped ranks are killed when another rank on their machine
 * ends. Time is counted in ticks of the thread: a stop of the whole machine stops the count, too.
 */
#pragma once

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the timeout in seconds: HETU_TIMEOUT, or 600; 0: none. */
int watchdog_timeout(void);

/* Call watchdog_open before the ranks meet, watchdog_connect when they have met, and watchdog_close
 * when this rank needs no other rank any more. On rank 0 watchdog_close waits until all other ranks
 * have ended. Without `heartbeat` each rank watches only its own waits. */
void watchdog_open(void);
void watchdog_connect(bool heartbeat);
void watchdog_close(void);

/* Begin and end a wait for other ranks, without a system call. Waits may be nested. */
void watchdog_begin_wait(void);
void watchdog_end_wait(void);

/* Reports progress within a wait. */
void watchdog_report_progress(void);

/* Reports to rank 0, with the next heartbeat, that this rank failed at a background task (writing a
 * checkpoint). Task numbers grow. `error` is an errno, or a negative number if another rank may
 * know the cause. Any thread may call it. */
void watchdog_report_failure(int task, int error);

/* On rank 0: returns the error of the first rank after *rank that failed at a task, and sets *rank;
 * 0: none. */
int watchdog_failure_of(int task, int *rank);

/* Waits a moment after a rank was found dead, so that the watch can print which died first. */
void watchdog_wait_for_cause(void);

/* Ends the watch in a forked child process, which is not a rank. */
void watchdog_forget(void);

#ifdef __cplusplus
}
#endif
