/* When to measure.
 *
 * How fast processors reach each other's caches may change while ranks run: a virtual machine's are
 * moved, and then are neighbours for some seconds, and far from each other for some more. What
 * takes place between them then takes up to twice as long. So one conversion is timed again and
 * again, and while it takes longer than it did, or than the cluster file says, whoever measures
 * waits:
 *
 *     calm_begin(arena, cluster);
 *     calm_wait();
 *     ... time_set(...) ...
 */
#ifndef HETU_RESHARD_CALM_H
#define HETU_RESHARD_CALM_H

#include "case.h"

/* Chooses the conversion, among all ranks; `cluster`, which may be NULL, says how long it should
 * take. */
void calm_begin(Arena *arena, const Cluster *cluster);

/* Waits until it takes no longer, but in all only a while; then the user is told, and when it takes
 * less than the cluster file says. All ranks call it together. */
void calm_wait(void);

#endif
