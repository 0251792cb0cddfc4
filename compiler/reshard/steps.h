/* The steps of a plan while they are made. */
#ifndef RESHARD_STEPS_H
#define RESHARD_STEPS_H

#include "reshard/plan_builder.h"

/* Appends an empty step. */
Step *add_step(PlanBuilder *planner, ht_verb verb);

/* Appends the step of a collective over `group`, whose devices have `parts`; where only one device
 * has some, that of a root: a broadcast or a reduce. */
void add_collective(PlanBuilder *planner, Devices group, Segments *parts, ht_verb verb);

/* The same, in parts, each of a root, where an int does not count the elements. */
void add_countable_collective(PlanBuilder *planner, const Devices *group, Segments *parts,
                              ht_verb verb);

/* Sends a segment in a step, an index of plan->steps; close_messages makes one message of all that
 * goes from one device to another. */
void send_segment(PlanBuilder *planner, int step, int sender, int receiver, Segment segment);
void close_messages(PlanBuilder *planner, int step);

/* Leaves out the exchanges that carry nothing. */
void drop_empty_steps(PlanBuilder *planner);

#endif
