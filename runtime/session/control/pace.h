/* The pace of this rank: how long its own computing takes in a step, without waiting for others.
 *
 * Time counts from pace_begin to pace_end, on the wall: around the parts of a step, but not around
 * conversions of layouts inside them, in which ranks wait for each other. What a device does behind
 * the host's back (CUDA) is not seen. Of the kernels that it calls the one that takes longest is
 * remembered, so that a rank that has become idle can tell by it how fast it is.
 */
#ifndef SESSION_CONTROL_PACE_H
#define SESSION_CONTROL_PACE_H

#include <hetu/kernel.h>

#include <stdbool.h>

void pace_begin(void);
void pace_end(void);

/* Calls a kernel. */
void pace_call(ht_kernel *kernel, const ht_call *call);

/* Seconds on a clock that only goes on. */
double pace_now(void);

/* What rank 0 hears of a rank at the end of a step. */
typedef struct PaceReport {
    double computing; // seconds; -1: the rank is idle under the strategy
    double kernel; // of a call, the shortest of those alike, of the kernel that took longest in the
                   // step; where the rank is idle, of the same call as in its last step that was
                   // not, with zeros in place of what it read; where there was none, of a small
                   // product (device_trial); 0: not known
} PaceReport;

/* Begins a step; `wanted`: the step will be reported. */
void pace_step(bool wanted);

PaceReport pace_report(bool idle, int64_t step);

#endif
