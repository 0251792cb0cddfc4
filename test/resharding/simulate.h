/* Runs a lowered plan on all its devices in one process, and counts what each sends and receives. */
#ifndef RESHARDING_SIMULATE_H
#define RESHARDING_SIMULATE_H

#include "support/arena.h"

#include <hetu/reshard.h>

#include <stdbool.h>

/* The element at an address. */
double element_load(ht_dtype dtype, const void *from);
void element_store(ht_dtype dtype, void *to, double value);

/* Of a plan of one tensor of floats: `from` and `to` are buffers by index in the plan's devices. False when the devices wait for each other
 * for ever, or a buffer is left that nobody receives. */
bool simulate(Arena *arena, const ht_reshard *plan, float *const *from, float *const *to);

/* The same of any plan: buffers by index in the plan's devices, by tensor. */
bool simulate_all(Arena *arena, const ht_reshard *plan, void *const *const *from, void *const *const *to);

#endif
