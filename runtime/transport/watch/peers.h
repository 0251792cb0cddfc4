/* The processes of this run on this machine, as /proc shows them: found by what their launcher put
 * into their environment, so also those that have not come as far as to connect to anybody. */
#ifndef TRANSPORT_WATCH_PEERS_H
#define TRANSPORT_WATCH_PEERS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a process lives, stopped or not: it is neither gone, nor on its way out, nor waits to be
 * buried. */
bool peers_process_lives(int process);

/* Writes to `list` which ranks of this run are stopped (SIGSTOP, a debugger): "rank 2 (process
 * 4711)", or "". Returns how many. */
int peers_stopped(char *list, size_t size);

/* Kills these, which could not end by themselves, and waits until they are dead. */
void peers_end_stopped(void);

#endif
