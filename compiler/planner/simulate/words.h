/* How what was simulated is called. */
#ifndef PLANNER_SIMULATE_WORDS_H
#define PLANNER_SIMULATE_WORDS_H

#include "planner/simulate/simulate.h"

/* "[0-3,6]" */
void print_devices(Text *out, const int *devices, int count);
const char *actor_devices(Arena *arena, const Actor *actor);

#endif
