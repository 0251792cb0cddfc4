/* What a plan's steps cost: the bytes that each device moves, and seconds by the cluster's
 * latency-bandwidth model. */
#ifndef RESHARD_COST_PRICE_H
#define RESHARD_COST_PRICE_H

#include "reshard/plan_builder.h"

/* Sets the loads to what the steps so far move, from the planner's first on. */
void count_moves(PlanBuilder *planner);

/* The slowest link of a group, as the ring over its devices has it. */
Link group_link(const Plan *plan, const Devices *group);

/* Seconds of a collective of n devices over a link as a ring, or a tree where that has fewer rounds
 * and nothing is divided, of a tensor of so many bytes; of messages, as many from each to each
 * other, or for an exchange to one. */
double verb_seconds(ht_verb verb, int n, double bytes, const Link *link);

/* Seconds that the steps take; each gets its part. */
double price_steps(PlanBuilder *planner);

#endif
