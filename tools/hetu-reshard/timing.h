/* Times conversions on the launched ranks, and measures a cluster file of these ranks. */
#ifndef HETU_RESHARD_TIME_H
#define HETU_RESHARD_TIME_H

#include "case.h"

/* Binds this rank to one processor, round-robin over the ranks of a host; returns the processor's
 * number, or -1 when the system refuses. Does not bind the only rank of a host. Ranks that are not
 * bound may share a processor in one run and not in the next, which changes times by a factor of
 * 2. */
int pin_rank(void);

/* Returns the seconds of a conversion of cases until the last device is done. Takes the minimum
 * over batches of runs, for about `budget` seconds in all. All ranks call it together and get the
 * same value. */
double time_set(const Set *set, double budget);

/* A message that two devices repeat. */
typedef struct Stream {
    Set set, reply; // the message, and a short one from its receiver back
    int devices[2];
    int runs;                 // messages of a batch
    double seconds, shortest; // of a message: in the median batch, and in the shortest
} Stream;

/* Sets the seconds of each stream; the streams, which have no device in common, run side by side.
 * Chooses runs so that each stream's batch takes `least` seconds by itself. `least` 0: keeps the
 * runs, and begins all streams at the same time. The median of three batches counts. All ranks call
 * it together and get the same values. */
void time_streams(Stream *streams, int count, double least);

/* Returns the seconds of a strided copy on all ranks at once. `bytes` counts reads and writes; rows
 * have `row` bytes and begin `apart` bytes after each other. */
double time_copies(int64_t bytes, int64_t row, int64_t apart, double budget);

/* Returns the seconds in which all ranks at once combine two buffers of `bytes` by `reduction`. */
double time_combinations(ht_dtype dtype, ht_reduction reduction, int64_t bytes, double budget);

/* Measures the links and the memory of the ranks and writes a cluster file. Measures in several
 * passes, in about `limit` seconds, and keeps the best value of each number. Ends the program with
 * a message when the file cannot be written. */
void measure_cluster(const char *path, double limit);

/* ---- waiting for a quiet machine (quiet.c) ---- */

/* Chooses the probe, a conversion among all ranks. `cluster` predicts how long the probe should
 * take; NULL: no prediction. */
void quiet_begin(Arena *arena, const Cluster *cluster);

/* Waits until the probe takes at most 1.3 times its shortest time so far. Warns, and stops waiting,
 * when all calls have waited 20 s together. Warns if the probe is faster than the cluster file
 * predicts. All ranks call it together. */
void quiet_wait(void);

#endif
