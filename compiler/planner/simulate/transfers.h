/* SimulatedTransfers: how a conversion loads links.
 *
 * Steps of a plan that take place at once are a round. In a round, devices that exchange anything,
 * directly or through others, are a hop: they begin and end it together. A hop has a latency, and
 * then moves bytes for `work` seconds, if nothing else uses its links, while it takes of each port
 * its share. A device has, for each kind of link that it has (cluster_link_kind), a port out and
 * one in. By themselves, the rounds of a plan take plan_seconds: latency and bandwidth, corrected
 * by what was measured. Where no device receives more than a number or two, as of a loss, all
 * rounds are one hop of all devices, without work.
 */
#ifndef PLANNER_SIMULATE_TRANSFERS_H
#define PLANNER_SIMULATE_TRANSFERS_H

#include "cost/cost.h"
#include "reshard/plan.h"

typedef struct TransferPort {
    int member; // of the hop's members
    int port;   // 2 * kind of the link, and 1 more where it receives
    double share;
} TransferPort;

typedef struct SimulatedTransfer {
    int round;
    ht_verb verb;
    double latency, work; // seconds
    int member_count, port_count;
    const int *members;        // devices, ascending
    const TransferPort *ports; // by member, and then by port
} SimulatedTransfer;

typedef struct SimulatedTransfers {
    int count;
    const SimulatedTransfer *at; // by round
    double moving; // seconds in which `movers` move their own memory, before all rounds
    int mover_count;
    const int *movers; // the devices that do anything
} SimulatedTransfers;

/* What a plan does; `device_of` says for each of its slots which device it is. */
SimulatedTransfers simulated_transfers_of(Arena *arena, const Cluster *cluster, const Plan *plan,
                                          const int *device_of);

#endif
