/* What simulated actors do with their time and memory. */
#ifndef PLANNER_SIMULATE_USAGE_H
#define PLANNER_SIMULATE_USAGE_H

#include "planner/simulate/simulate.h"

/* By actor, of all steps. */
ActorTime *usage_times(Arena *arena, const SimulatedSteps *steps);

/* By actor, of the first step. */
ActorMemory *usage_memory(Arena *arena, const SimulatedSteps *steps);

#endif
