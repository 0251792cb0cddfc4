/* Finds what hosts lack for a run (heturun --check --hosts FILE).
 *
 * heturun starts `heturun --probe` on each host, as it would start ranks. Both write lines:
 *
 *     probe says                      heturun asks
 *     KEY
 *     program HASH, or lacks ...      time                  -> clock SECONDS
 *     folder KEY                      reach HOST PORT ADDRESSES
 *     listens PORT ADDRESSES                                -> reached HOST, unreached HOST
 *     ready
 *
 * What login scripts print stands before the line KEY, which heturun gives the probe. Each host
 * must reach those above it in the file, since each rank connects to all lower ranks. */
#ifndef HETURUN_CHECK_HOSTS_H
#define HETURUN_CHECK_HOSTS_H

#include "slots.h"

/* Most seconds for a probe's lines up to "ready", and for a probe to reach another host. */
enum { PROBE_SECONDS = 30, REACH_SECONDS = 5 };

/* Prints a table with a line for each host, then what each lacks. `words` is the program with its
 * arguments; NULL: none. Returns 1 if a host lacks something, else 0. */
int check_print(const Slots *slots, const char *shell, char **words);

/* Carries out `heturun --probe -- FOLDER MARKER KEY HOST PROGRAM` on a host (probe.c). MARKER is a
 * file in the folder of the run. The answers follow a line with KEY. Returns the exit status. */
int probe_answer(char **words);

/* Returns whether this machine lacks a library of a program. */
bool probe_lacks_library(const char *program);

#endif
