/* Starts the other ranks of a program that was started by itself, without a launcher.
 *
 *     ./model            rank 0: goes on, prints, reads the standard input
 *      +- ./model        ranks 1 to 3: the same command, standard output to /dev/null;
 *      +- ./model        they end when rank 0 ends, even when it is killed
 *      +- ./model
 *
 * The ranks find each other like the ranks of heturun (transport/meet/rendezvous.h).
 */
#ifndef TRANSPORT_MEET_START_LOCAL_RANKS_H
#define TRANSPORT_MEET_START_LOCAL_RANKS_H

/* Starts ranks 1 to count - 1 and makes this process rank 0 of `count`. Ends the program if a
 * process or the folder where the ranks meet cannot be created. */
void local_ranks_start(int count);

/* Stops the thread that watches for ranks that end: from now on the transport notices them. */
void local_ranks_met(void);

/* Waits until the started ranks have ended; kills those that do not end within some seconds. */
void local_ranks_close(void);

/* Forgets the started ranks without waiting for them, in a forked child process. */
void local_ranks_forget(void);

#endif
