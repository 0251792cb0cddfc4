/* How long conversions take on the ranks that were launched, and the cluster file that describes
 * them. */
#ifndef HETU_RESHARD_TIME_H
#define HETU_RESHARD_TIME_H

#include "case.h"

/* Keeps this rank on one processor of those that it may run on, the ranks of a host on all of them
 * in turn: where the system moves ranks, two of four share one processor in one run and have two in
 * the next, and take twice as long or half. The processor's number; -1 where the system does not
 * say which there are. */
int bind_rank(void);

/* Seconds of a conversion of cases until its last device is done: the least of batches of runs in a
 * row, which take `budget` seconds together. All ranks call it together, and get the same. */
double time_set(const Set *set, double budget);

/* Seconds in which every rank at once makes a copy that reads and writes `bytes` in all, in rows of
 * so many, each of which begins `apart` behind the one before. */
double time_copies(int64_t bytes, int64_t row, int64_t apart, double budget);

/* Seconds in which every rank at once combines so many bytes of elements with as many. */
double time_combinations(ht_dtype dtype, ht_reduction reduction, int64_t bytes, double budget);

/* Measures the links and the memory of the ranks, and writes a cluster file: several times, of
 * which the best counts, as far as `limit` seconds allow it. Ends the program with a message when
 * it cannot be written. */
void measure_cluster(const char *path, double limit);

#endif
