/* Signals that ask a program to end: SIGTERM, SIGUSR1 and SIGUSR2, sent to any of its ranks.
 *
 * A handler only takes notes. Rank 0 decides, between two steps, and the other ranks wait for its
 * commands; what they were sent reaches it with their pulse (transport/watch/watch.h). A handler of
 * main's own stays in charge of its signal: it is called on rank 0, and no rank ends. Where nothing
 * would come of waiting (signals_heed was not called), a rank ends at once, with a line that says
 * what it was doing; so it does at a second SIGTERM.
 */
#ifndef BASE_SIGNALS_H
#define BASE_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Takes over the signals that are not ignored. `main_here`: this is rank 0, which calls main's
 * handlers. */
void told_open(bool main_here);

/* Gives the signals back to those who had them. */
void told_close(void);

/* On rank 0: finds handlers that main has installed since the last call. */
void told_look(void);

/* From now on a request does not end this rank at once; and whether that was called. */
void signals_heed(void);
bool told_heeded(void);

/* On rank 0: the signal that asks the program to end, whichever rank got it; 0: none. SIGTERM alone
 * counts where main handles it. */
int told_signal(void);

/* The same, but only of signals that main does not handle. */
int told_unhandled(void);

/* "SIGTERM" */
const char *told_name(int signal_number);

/* What a rank's pulse says about signals: of rank 0 which ones end no rank, of others how often
 * each has come. */
uint32_t told_pulse(void);

/* Takes in the pulse of rank 0 on another rank, or of another rank on rank 0; from the thread that
 * hears it. */
void told_hear(uint32_t pulse);

/* On rank 0, a few times a second: hands main's handlers what other ranks alone were sent. */
void told_tick(void);

#ifdef __cplusplus
}
#endif

#endif
