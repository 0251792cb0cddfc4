/* Waits for a moment at which the machine is fit for measurements.
 *
 * The host of a virtual machine may move its processors while ranks run. Ranks that shared a cache
 * are then far apart for some seconds, and exchanges between them take up to twice as long. So one
 * conversion, the probe, is timed before each measurement. While the probe takes longer than at its
 * fastest, or than the cluster file predicts, the measurement waits:
 *
 *     calm_begin(arena, cluster);
 *     calm_wait();
 *     ... time_set(...) ...
 */
#ifndef HETU_RESHARD_CALM_H
#define HETU_RESHARD_CALM_H

#include "case.h"

/* Chooses the probe, a conversion among all ranks. `cluster` predicts how long the probe should
 * take; NULL: no prediction. */
void calm_begin(Arena *arena, const Cluster *cluster);

/* Waits until the probe is as fast as before, at most for a limited time in all; when that is up,
 * or the probe is faster than the cluster file predicts, prints a warning. All ranks call it
 * together. */
void calm_wait(void);

#endif
