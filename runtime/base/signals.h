/* Signals that ask a program to end: SIGTERM, SIGUSR1 and SIGUSR2, sent to any of its ranks.
 *
 * - The runtime's handler only counts signals. Rank 0 decides between two steps whether to
 *   end (session/control/save_on_signal.c).
 * - Other ranks report their signals to rank 0 with their heartbeat (transport/watchdog).
 * - If main has its own handler for a signal, rank 0 calls that handler, and no rank ends.
 * - Before signals_heed, and at a second SIGTERM, a rank ends at once with a message. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Installs handlers for the signals that are not ignored. `main_here`: this is rank 0, which calls
 * main's handlers. */
void told_open(bool main_here);

/* Restores the handlers from before told_open. */
void told_close(void);

/* On rank 0: finds handlers that main has installed since the last call. */
void told_look(void);

/* signals_heed makes this rank defer to rank 0's decision; told_heeded returns whether it ran. */
void signals_heed(void);
bool told_heeded(void);

/* On rank 0: returns the signal that asks the program to end, received by any rank; 0: none.
 * Ignores signals that main handles, except SIGTERM. */
int told_signal(void);

/* Does the same as told_signal, but ignores all signals that main handles. */
int told_unhandled(void);

/* Returns the name of a signal: "SIGTERM". */
const char *told_name(int signal_number);

/* Returns the signal bits of this rank's heartbeat. Rank 0: which signals main handles,
 * and whether ranks defer signals; other ranks: how many times each signal came. */
uint32_t told_heartbeat(void);

/* Handles the signal bits of a heartbeat to or from rank 0. The receiving thread calls it. */
void told_hear(uint32_t heartbeat);

/* On rank 0, a few times a second: calls main's handlers for signals that only other ranks got. */
void told_tick(void);

#ifdef __cplusplus
}
#endif
