/* What steps take on a cluster: where a link was measured, by what was measured, and by the
 * processors that devices share.
 *
 * Latency and bandwidth (price.h) say what a step takes on devices that have nothing in common.
 * Devices of one host share its memory and, when there are more of them than processors, these too:
 * a processor does in turn what its devices have to do, and a step takes as long as its busiest
 * one. A processor does one step after another; steps of different processors go on at once.
 */
#ifndef RESHARD_COST_RESOURCES_H
#define RESHARD_COST_RESOURCES_H

#include "reshard/plan_builder.h"

typedef struct Resources Resources;

/* The processors of a plan's devices, all free. The plan has its steps and its loads. */
Resources *resources_create(PlanBuilder *planner);

/* The steps [from, to), which take place at once, take their processors when these are free;
 * `seconds` by latency and bandwidth, if nothing was measured. The seconds until all steps so far
 * are done. */
double resources_take(Resources *resources, int from, int to, double seconds);

#endif
