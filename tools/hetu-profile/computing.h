/* Measures how long kernels of the run-time library take, on all ranks at once. */
#ifndef HETU_PROFILE_COMPUTING_H
#define HETU_PROFILE_COMPUTING_H

#include "cost/cost.h"

/* A kernel on a shape. */
typedef struct Sample {
    const char *what;
    int64_t shape[4]; // extents; each kernel defines their meaning

    Work work;      // floating-point operations and bytes, by the operator's rule
    bool fits;      // the sample is used to fit the device class's rates; else to check them
    double seconds; // measured
} Sample;

/* Lists the samples of all kernels, not yet measured; returns how many. */
int computing_samples(Arena *arena, Sample **samples);

/* Returns the seconds of a sample on the slowest rank, the minimum over several batches of runs.
 * All ranks call it together. */
double computing_seconds(const Sample *sample);

/* Returns the seconds of the forward kernels of one transformer layer: the difference of two stacks
 * of unequal depth. Writes the work of each kernel to `works`, at most `room` entries. All ranks
 * call it together. */
double layer_seconds(Work *works, int room, int *count);

/* Returns the slowdown when a matrix product and an exchange with a neighbour overlap, relative to
 * the longer one alone. From 1, full overlap, to 2, no overlap. */
double overlap_of_both(void);

#endif
