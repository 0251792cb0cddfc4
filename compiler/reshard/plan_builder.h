/* The planner while it makes a plan: what its steps leave to each other. The plan's counters of
 * bytes serve as the loads that are balanced.
 */
#ifndef RESHARD_PLAN_BUILDER_H
#define RESHARD_PLAN_BUILDER_H

#include "cluster/cluster.h"
#include "reshard/plan.h"

/* A part of a value that lies at its holders and shall go to its receivers. */
typedef struct Transfer {
    Segment segment;
    Devices holders, receivers; // in the layout's order
} Transfer;

typedef Array(Transfer) Transfers;

/* A segment on its way: what becomes part of a message. */
typedef struct Packet {
    int sender, receiver;
    Segment segment;
} Packet;

typedef Array(Packet) Packets;

typedef struct PlanBuilder {
    Arena *arena;
    Plan *plan;
    Transfers transfers;     // that are still to be made
    Array(Packets) outboxes; // by step: what will be its messages
    const bool *avoid;       // by slot: takes part in no collective
    bool messages;           // there are no collectives
    bool tiers;              // moves inside hosts and across them are steps of their own
    int stage;               // of the steps that are added
    int first;               // the step from which on moves are counted
} PlanBuilder;

/* Appends a transfer to a list, unless there is nothing to do. */
void push_transfer(PlanBuilder *planner, Transfers *list, Segment segment, Devices holders,
                   Devices receivers);

/* Appends the transfer of a segment from one device to the others of a list. */
void push_result(PlanBuilder *planner, Transfers *list, Segment segment, int holder,
                 const Devices *targets);

/* The steps of a plan while they are made. */

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

/* The last step of planning: what remains to be said of the steps, and a plan that has nothing
 * else. */

/* Numbers the groups of the steps, finds the types that they move and the tensors that stay in
 * place, names the plan and prices it. */
void finish_plan(PlanBuilder *planner);

/* Returns the field's word for the steps; see plan_name. */
const char *name_plan(PlanBuilder *planner);

/* Returns a copy of a finished plan in `arena`, without what planning left behind. */
Plan *plan_copy(Arena *arena, const Plan *plan);

/* The steps of a plan, in order: made several times, in one tier or in two, and the cheapest are
 * taken. */

/* Makes the plan's steps of its tasks, and counts what they move. */
void choose_steps(PlanBuilder *planner);

/* Makes the steps once, in one tier or in two as the planner says. */
void make_steps(PlanBuilder *planner);

/* Makes one collective of several small ones, and several of those in which large tensors are
 * together. */
void fuse_collectives(PlanBuilder *planner);

/* From conversions to tasks: which tensors are planned as one, what their layouts have in common,
 * and which contributions make which value for whom. */

/* Makes the plan's buckets of the conversions, each with the overlap of its layouts. */
void find_buckets(PlanBuilder *planner, const Conversion *conversions, int count);

/* Makes the tasks of the buckets. */
void find_tasks(PlanBuilder *planner);

#endif
