/* What a plan's steps cost: the bytes that each device moves, and seconds by the cluster's
 * latency-bandwidth model. */
#ifndef RESHARD_COST_PRICE_H
#define RESHARD_COST_PRICE_H

#include "reshard/plan_builder.h"

/* Sets the loads to what the steps so far move, from the planner's first on. */
void count_moves(PlanBuilder *planner);

/* Returns the slowest link of a group, as the ring over its devices has it. */
Link group_link(const Plan *plan, const Devices *group);

/* Returns the seconds of a collective of n devices over a link as a ring, or a tree where that
 * has fewer rounds and nothing is divided, of a tensor of so many bytes; of messages, as many
 * from each to each other, or for an exchange to one. */
double verb_seconds(ht_verb verb, int n, double bytes, const Link *link);

/* Returns the seconds that the steps take; each gets its part. */
double price_steps(PlanBuilder *planner);

/* What steps take on a cluster: where a link was measured, by what was measured, and by the
 * processors that devices share.
 *
 * Latency and bandwidth (price.h) say what a step takes on devices that have nothing in common.
 * Devices of one host share its memory and, when there are more of them than processors, these too:
 * a processor does in turn what its devices have to do, and a step takes as long as its busiest
 * one. A processor does one step after another; steps of different processors go on at once.
 */

typedef struct Resources Resources;

/* Returns the processors of a plan's devices, all free. The plan has its steps and its loads. */
Resources *resources_create(PlanBuilder *planner);

/* Returns the steps [from, to), which take place at once, take their processors when these are
 * free; `seconds` by latency and bandwidth, if nothing was measured. The seconds until all steps
 * so far are done. */
double resources_take(Resources *resources, int from, int to, double seconds);

#endif
