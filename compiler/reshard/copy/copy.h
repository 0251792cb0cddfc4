/* Transfers: bring values to the devices that need them.
 *
 * Closed groups of devices use all-gathers and broadcasts (all_gather.c). Otherwise holders send
 * the value; if holders would send too much, receivers pass it on (senders.c). Devices that all
 * send to each other use an all-to-all (all_to_all.c).
 *
 *     [0-1]{0:2} to [0-1]{dup:2}: one all-gather     [0]{} to [1-3]{dup:3}: one broadcast
 */
#pragma once

#include "reshard/load/balance_load.h"

/* A transfer, whether it goes along a tree, and index of the job that chooses its senders. */
typedef struct Route {
    Transfer transfer;
    bool tree;
    int job;
} Route;

typedef Array(Route) Routes;

/* Appends all-gathers and, if `broadcasts`, broadcasts in closed groups; returns the rest. */
Transfers gather_transfers(PlanBuilder *planner, const Transfers *transfers, bool broadcasts);

/* Appends the routes of transfers to `routes`, and the jobs that choose their senders to `jobs`.
 * Divides transfers so finely that their loads fit below the load cap of `cap` bytes. */
void routes_add(PlanBuilder *planner, const Transfers *transfers, int64_t cap, Routes *routes,
                Jobs *jobs);

/* Appends the steps that bring the transfers to their receivers. */
void routes_send(PlanBuilder *planner, const Routes *routes, const Jobs *jobs);

/* Makes the messages of step `exchange`. Unless the plan must have messages only, turns those among
 * three or more devices that all send to each other into all-to-alls. */
void end_exchange(PlanBuilder *planner, int exchange);
