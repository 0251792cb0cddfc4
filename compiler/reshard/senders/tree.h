/* Trees: the ways of values that are passed on, and of contributions that are combined, in several
 * rounds. */
#ifndef RESHARD_SENDERS_TREE_H
#define RESHARD_SENDERS_TREE_H

#include "reshard/plan_builder.h"

/* Arranges nodes as a forest whose first `tops` nodes have no parent, so that every node has
 * `degree` children and no path is longer than need be. The degrees add up to the number of the
 * other nodes. Fills the parent (-1: none) and the depth of every node. */
void tree_arrange(PlanBuilder *planner, int tops, int count, const int *degree, int *parent,
                  int *depth);

#endif
