/* Measures how long kernels of the run-time library take, on all ranks at once. */
#ifndef HETU_PROFILE_COMPUTING_H
#define HETU_PROFILE_COMPUTING_H

#include "cost/cost.h"

/* A kernel on a shape. */
typedef struct Sample {
    const char *what;
    int64_t shape[4]; // extents; each kernel defines their meaning

    Work work;      // floating-point operations and bytes, by the operator's rule
    bool fits;      // true: rates are fitted to this sample; false: the sample checks the rates
    double seconds; // measured
} Sample;

/* Sets *samples to the samples of all kernels, not yet measured; returns their number. */
int computing_samples(Arena *arena, Sample **samples);

/* Returns a sample's seconds on the slowest rank, the best of some batches. All ranks call it. */
double computing_seconds(const Sample *sample);

/* Returns the seconds of the forward kernels of one transformer layer, from the difference between
 * two stacks of layers. Writes the work of the first `room` kernels to `works` and their number to
 * *count. All ranks call it together. */
double layer_seconds(Work *works, int room, int *count);

/* Returns the time of matrix products and exchanges with a neighbour at once, divided by the longer
 * time of the two alone. 1: full overlap; 2: no overlap. All ranks call it. */
double overlap_of_both(void);

#endif
