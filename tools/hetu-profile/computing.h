/* What computing takes: the kernels of the run-time library, on all ranks at once. */
#ifndef HETU_PROFILE_COMPUTING_H
#define HETU_PROFILE_COMPUTING_H

#include "cost/cost.h"

/* A kernel on a shape. */
typedef struct Sample {
    const char *what;
    int64_t shape[4]; // what it means is the kernel's
    Work work;        // as the rule of the operator says
    bool fits;        // the class's rates are taken from it; else it checks them
    double seconds;   // measured
} Sample;

/* The samples of all kernels, with nothing measured; how many. */
int computing_samples(Arena *arena, Sample **samples);

/* The seconds of a sample on the slowest rank, of the best of some batches of runs; all ranks call
 * it together. */
double computing_seconds(const Sample *sample);

/* Seconds of a layer of a transformer, its forward kernels in a row, from a stack of two depths
 * by difference; and its work, kernel by kernel, at most `room` entries. All ranks call it
 * together. */
double layer_seconds(Work *works, int room, int *count);

/* By how much the longer of a product and an exchange with a neighbour takes longer when both go on
 * at once: 1 at least, and 2 at most, as where one goes on behind the other. */
double overlap_of_both(void);

#endif
