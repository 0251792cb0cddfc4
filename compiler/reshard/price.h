/* What a plan's steps cost: the bytes that each device moves, and seconds by the cluster's latency-bandwidth model. */
#ifndef RESHARD_PRICE_H
#define RESHARD_PRICE_H

#include "reshard/planner.h"

/* Sets the loads to what the steps so far move, from the planner's first on. */
void count_moves(Planner *planner);

/* The slowest link of a group, as the ring over its devices has it. */
Link group_link(const Plan *plan, const Devices *group);

/* Seconds that the steps take. */
double price_steps(Planner *planner);

#endif
