/* What the parts of the planner share while they make a plan. */
#ifndef RESHARD_PLANNER_H
#define RESHARD_PLANNER_H

#include "cluster/cluster.h"
#include "reshard/plan.h"

/* A part of a value that lies at its holders and shall go to those that want it. */
typedef struct Transfer {
    Segment segment;
    Devices holders, receivers; // in the layout's order
} Transfer;

typedef Array(Transfer) Transfers;

/* A segment on its way. */
typedef struct Packet {
    int sender, receiver;
    Segment segment;
} Packet;

typedef Array(Packet) Packets;

typedef struct Planner {
    Arena *arena;
    Plan *plan;
    Transfers transfers;
    int64_t *sent, *received; // bytes: the plan's counters; while it is made, loads that are to be balanced
    Array(Packets) outboxes;  // by step: what will be its messages
    const bool *avoid;        // by index in plan->devices: takes part in no collective
    bool tiers;               // moves inside hosts and across them are steps of their own
    int stage;                // of the steps that are added
    int first;                // the step from which on moves are counted
} Planner;

/* A device's index in plan->devices. */
int plan_slot(const Plan *plan, int device);

/* A device's position in a list, or -1. */
int devices_find(const Devices *devices, int device);

/* Makes the plan's buckets of the conversions, and their tasks. */
void plan_buckets(Planner *planner, const Conversion *conversions, int count);
void plan_tasks(Planner *planner);

/* Bytes of an element of what a task makes. */
int task_element(const Plan *plan, int task);

/* Makes the plan's steps of its tasks, and counts what they move. */
void plan_steps(Planner *planner);

/* Appends an empty step. */
Step *plan_step(Planner *planner, ht_verb verb);

/* Appends the step of a collective over `group`, whose devices have `parts`. */
void plan_collective(Planner *planner, Devices group, Segments *parts, ht_verb verb);

/* Makes one collective of several small ones, and several of those in which large tensors are together. */
void plan_fuse(Planner *planner);

/* The devices that are connected by `sets`, as a number for each set: sets with the same number share devices, directly or through others.
 * Sets of different `kinds` are not connected; equal kinds stand together. NULL: all are of one kind. */
int *connect_sets(Planner *planner, const Devices *sets, const int *kinds, int count, int *component_count);

/* The sets of each component, one after another, in their order; `begin`, of components + 1 entries that are zero, gets where each
 * component begins. */
int *sort_by_component(Planner *planner, const int *component, int count, int components, int *begin);

/* The size of the smallest elements among `count` lists of segments; 8 where all are empty. */
int segments_element(const Plan *plan, const Segments *lists, int count);

/* The slowest link of a group, as the ring over its devices has it. */
Link group_link(const Plan *plan, const Devices *group);

/* Seconds that the plan's steps take by its cluster. */
double price_plan(Planner *planner);

/* The field's word for the plan's steps; see plan_name. */
const char *name_plan(Planner *planner);

/* A copy of a finished plan in `arena`, without what planning left behind. */
Plan *plan_copy(Arena *arena, const Plan *plan);

/* Sets the loads to what the steps so far move, from the planner's first on. */
void plan_count(Planner *planner);

/* Sends a segment in a step, an index of plan->steps; step_close makes one message of all that goes from one device to another. */
void step_send(Planner *planner, int step, int sender, int receiver, Segment segment);
void step_close(Planner *planner, int step);

/* Leaves out the exchanges that carry nothing. */
void plan_drop_empty(Planner *planner);

#endif
