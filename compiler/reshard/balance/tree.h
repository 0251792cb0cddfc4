/* Trees: the ways of values that are passed on, and of contributions that are combined, in several rounds. */
#ifndef RESHARD_BALANCE_TREE_H
#define RESHARD_BALANCE_TREE_H

#include "reshard/planner.h"

/* Arranges nodes as a forest whose first `tops` nodes have no parent, so that every node has `degree` children and no path is longer than
 * need be. The degrees add up to the number of the other nodes. Fills the parent (-1: none) and the depth of every node. */
void tree_arrange(Planner *planner, int tops, int count, const int *degree, int *parent, int *depth);

#endif
