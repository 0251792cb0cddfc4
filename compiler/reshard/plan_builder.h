/* The state of the planner while it makes a plan, and the functions of the folders of reshard/ that
 * build the plan. Load balancing uses the plan's counts of bytes as loads. */
#pragma once

#include "cluster/cluster.h"
#include "reshard/plan.h"

/* A segment that `holders` have and `receivers` need. */
typedef struct Transfer {
    Segment segment;
    Devices holders, receivers; // both in the layout's order
} Transfer;

typedef Array(Transfer) Transfers;

/* A segment from one device to another; packets with the same ends become one message. */
typedef struct Packet {
    int sender, receiver;
    Segment segment;
} Packet;

typedef Array(Packet) Packets;

typedef struct PlanBuilder {
    Arena *arena;
    Plan *plan;
    Transfers transfers;     // transfers that have no steps yet
    Array(Packets) outboxes; // by step: the packets that become its messages
    const bool *avoid;       // by slot: no collective may contain the device
    bool messages;           // the plan must have messages only, no collectives
    bool tiers;              // the plan is hierarchical: steps inside hosts, and steps across them
    int stage;               // stage of the steps that are added
    int first;               // the first step whose bytes are counted
} PlanBuilder;

/* Appends a transfer to a list, unless it has no receivers or an empty segment. */
void push_transfer(PlanBuilder *planner, Transfers *list, Segment segment, Devices holders,
                   Devices receivers);

/* Appends the transfer of a segment from `holder` to the other devices of `targets`. */
void push_result(PlanBuilder *planner, Transfers *list, Segment segment, int holder,
                 const Devices *targets);

/* ---- steps (steps.c) ---- */

/* Appends an empty step to the current stage. Returns it; it moves when another step is added. */
Step *add_step(PlanBuilder *planner, ht_verb verb);

/* Appends a collective over `group`; `parts` are by position in the group. An all-gather or
 * reduce-scatter with one part becomes a broadcast or reduce with that part's device as root. */
void add_collective(PlanBuilder *planner, Devices group, Segments *parts, ht_verb verb);

/* Appends a collective, or, if an int cannot count its elements, a broadcast or reduce per part. */
void add_countable_collective(PlanBuilder *planner, const Devices *group, Segments *parts,
                              ht_verb verb);

/* Add a packet to a step, and turn all packets of a step into messages, one for each pair of sender
 * and receiver. `step` is an index of plan->steps. */
void send_segment(PlanBuilder *planner, int step, int sender, int receiver, Segment segment);
void close_messages(PlanBuilder *planner, int step);

/* Removes exchanges that have neither messages nor reductions. */
void drop_empty_steps(PlanBuilder *planner);

/* ---- finish (finish/): completion of a plan ---- */

/* Completes the plan: groups, types that steps move, tensors that stay in place, name and price. */
void finish_plan(PlanBuilder *planner);

/* Returns the plan's name (plan_name). */
const char *name_plan(PlanBuilder *planner);

/* Returns a copy of a finished plan without scratch data. */
Plan *plan_copy(Arena *arena, const Plan *plan);

/* ---- order (order/): makes steps repeatedly, hierarchical or not; takes the cheapest ---- */

/* Makes the steps of the plan's tasks, and counts the bytes that they move. */
void choose_steps(PlanBuilder *planner);

/* Makes the steps once, hierarchical if `tiers` is set. */
void make_steps(PlanBuilder *planner);

/* Fuses collectives of the same kind for small tensors into one; large tensors keep their own. */
void fuse_collectives(PlanBuilder *planner);

/* ---- tasks (intersection/): from conversions to buckets and tasks ---- */

/* Makes the plan's buckets of equal conversions, each with the overlap of its layouts. */
void find_buckets(PlanBuilder *planner, const Conversion *conversions, int count);

/* Makes the tasks of the buckets: the contributions to each value, and its target devices. */
void find_tasks(PlanBuilder *planner);
