/* The last step of planning: what remains to be said of the steps, and a plan that has nothing
 * else. */
#ifndef RESHARD_FINISH_FINISH_H
#define RESHARD_FINISH_FINISH_H

#include "reshard/plan_builder.h"

/* Numbers the groups of the steps, finds the types that they move and the tensors that stay in
 * place, names the plan and prices it. */
void finish_plan(PlanBuilder *planner);

/* The field's word for the steps; see plan_name. */
const char *name_plan(PlanBuilder *planner);

/* A copy of a finished plan in `arena`, without what planning left behind. */
Plan *plan_copy(Arena *arena, const Plan *plan);

#endif
