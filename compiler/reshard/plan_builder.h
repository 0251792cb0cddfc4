/* The planner while it makes a plan: what its steps leave to each other. The plan's counters of
 * bytes serve as the loads that are balanced.
 */
#ifndef RESHARD_PLAN_BUILDER_H
#define RESHARD_PLAN_BUILDER_H

#include "cluster/cluster.h"
#include "reshard/plan.h"

/* A part of a value that lies at its holders and shall go to its receivers. */
typedef struct HostTransfer {
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

#endif
