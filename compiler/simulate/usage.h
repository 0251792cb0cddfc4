/* What simulated actors do with their time and memory. */
#ifndef SIMULATE_USAGE_H
#define SIMULATE_USAGE_H

#include "simulate/simulate.h"

/* By actor, of all steps. */
ActorTime *usage_times(Arena *arena, const SimulatedSteps *steps);

/* By actor, of the first step. */
ActorMemory *usage_memory(Arena *arena, const SimulatedSteps *steps);

#endif
