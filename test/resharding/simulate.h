/* Runs a lowered plan on all its devices in one process, and counts what each sends and receives. */
#ifndef RESHARDING_SIMULATE_H
#define RESHARDING_SIMULATE_H

#include "support/arena.h"

#include <hetu/reshard.h>

#include <stdbool.h>

/* `from` and `to` are float buffers by index in the plan's devices. False when the devices wait for each other for ever, or a buffer is left that nobody receives. */
bool simulate(Arena *arena, const ht_reshard *plan, float *const *from, float *const *to);

#endif
