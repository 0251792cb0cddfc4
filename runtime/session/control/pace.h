/* Measures this rank's computing time in a step, without waiting for other ranks.
 *
 * The clock runs (wall time) from pace_begin to pace_end: in the parts of a step, but not in
 * conversions, where ranks wait for each other. Asynchronous work of a GPU is not measured. The
 * kernel that took longest is kept, so that a rank that becomes idle can run it to measure its
 * rate. rates.c compares the times, balance.c decides when to make a new plan. */
#pragma once

#include <hetu/kernel.h>

#include <stdbool.h>

void pace_begin(void);
void pace_end(void);

/* Calls a kernel, and measures its time in steps that are reported. */
void pace_call(ht_kernel *kernel, const ht_call *call);

/* Returns the seconds of a monotonic clock. */
double pace_now(void);

/* A rank's report to rank 0 at the end of a step. */
typedef struct PaceReport {
    double computing; // computing seconds of the step; -1: the rank is idle
    double kernel; // seconds of the kernel call that takes most of a step, the minimum over equal
                   // calls. An idle rank times that call of its last busy step on zeros, or a small
                   // product (device_trial). 0: not known
} PaceReport;

/* Begins a step; `wanted`: the step will be reported. */
void pace_step(bool wanted);

/* Returns this rank's report of a step. An idle rank runs a kernel to measure its rate. */
PaceReport pace_report(bool idle, int64_t step);
