/* The steps of a plan, in order: made several times, in one tier or in two, and the cheapest are
 * taken. */
#ifndef RESHARD_ORDER_ORDER_H
#define RESHARD_ORDER_ORDER_H

#include "reshard/plan_builder.h"

/* Makes the plan's steps of its tasks, and counts what they move. */
void choose_steps(PlanBuilder *planner);

/* Makes the steps once, in one tier or in two as the planner says. */
void make_steps(PlanBuilder *planner);

/* Makes one collective of several small ones, and several of those in which large tensors are
 * together. */
void fuse_collectives(PlanBuilder *planner);

#endif
