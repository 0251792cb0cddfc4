/* The processes of this run on this machine, as /proc shows them: found by what their launcher put into their environment, so also those
 * that have not come as far as to connect to anybody. */
#ifndef COMM_PEERS_H
#define COMM_PEERS_H

#include <stddef.h>

/* Kills the ranks of this run that are stopped (SIGSTOP, a debugger), which could not end by themselves; writes who they were to `list`:
 * "rank 2 (process 4711)", or "". Returns how many. */
int peers_end_stopped(char *list, size_t size);

#endif
