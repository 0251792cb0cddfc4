/* Simulated transfers: how a conversion loads the links.
 *
 * Steps of a plan that take place at once are a round. Devices that exchange data in a round,
 * directly or through others, are one transfer, which they begin and end together. A transfer has a
 * latency, then moves bytes for `work` seconds, if no other transfer uses its links. Meanwhile it
 * uses a share of each of its ports. A device has a port out and a port in for each kind of link
 * (cluster_link_kind). Transfers between hosts also use shares of the uplinks that they pass, which
 * other devices use, too. Alone, the rounds of a plan take plan_seconds: latency and bandwidth,
 * corrected by measurements. If each device receives only a few bytes, such as a loss, all rounds
 * are one transfer of all devices, without work. */
#pragma once

#include "hetu/reshard.h"

typedef struct Arena Arena;
typedef struct Cluster Cluster;
typedef struct Plan Plan;

typedef struct TransferPort {
    int member;   // index in the transfer's members
    int port;     // 2 * kind of the link, plus 1 where it receives
    double share; // as EngineUse.share
} TransferPort;

typedef struct TransferUplink {
    int direction; // one direction of an uplink (cluster/uplinks.h)
    double share;  // as EngineUse.share
} TransferUplink;

typedef struct SimulatedTransfer {
    int round; // number of the round in the plan, from 0
    ht_verb verb;
    double latency, work; // seconds
    int member_count, port_count, uplink_count;
    const int *members;        // devices, ascending
    const TransferPort *ports; // by member, and then by port
    const TransferUplink *uplinks;
} SimulatedTransfer;

typedef struct SimulatedTransfers {
    int count;
    const SimulatedTransfer *at; // in the order of the rounds
    double moving; // seconds in which `copiers` copy their own memory, before all rounds
    int copier_count;
    const int *copiers; // the devices that copy
} SimulatedTransfers;

/* Returns the transfers of a plan; `device_of` maps the plan's slots to devices. `cluster` may have
 * slower links than the cluster that the plan was made for (cluster_lowered). */
SimulatedTransfers simulated_transfers_of(Arena *arena, const Cluster *cluster, const Plan *plan,
                                          const int *device_of);
