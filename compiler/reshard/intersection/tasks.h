/* From conversions to tasks: which tensors are planned as one, what their layouts have in common,
 * and which contributions make which value for whom. */
#ifndef RESHARD_INTERSECTION_TASKS_H
#define RESHARD_INTERSECTION_TASKS_H

#include "reshard/plan_builder.h"

/* Makes the plan's buckets of the conversions, each with the overlap of its layouts. */
void find_buckets(PlanBuilder *planner, const Conversion *conversions, int count);

/* Makes the tasks of the buckets. */
void find_tasks(PlanBuilder *planner);

#endif
