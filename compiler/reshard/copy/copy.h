/* Transfers: values on their way to those that want them.
 *
 * Closed groups do it by all-gathers and broadcasts (all_gather.c). For the rest, holders send, and
 * where they would send too much, receivers pass it on (senders.c); devices that all send to each
 * other do so by an all-to-all (all_to_all.c).
 */
#ifndef RESHARD_COPY_COPY_H
#define RESHARD_COPY_COPY_H

#include "reshard/senders/balance_senders.h"

/* How a transfer travels: which job has its loads, and whether along a tree. */
typedef struct Route {
    Transfer transfer;
    bool tree;
    int job;
} Route;

typedef Array(Route) Routes;

/* Does by all-gathers, and broadcasts if these are wanted, what can be done so; the result has the
 * transfers that are left. */
Transfers gather_transfers(PlanBuilder *planner, const Transfers *transfers, bool broadcasts);

/* Adds the routes of the transfers, and the jobs by which their senders are chosen; the loads' cap
 * says how fine they must be. */
void routes_add(PlanBuilder *planner, const Transfers *transfers, int64_t cap, Routes *routes,
                Jobs *jobs);

/* Appends the steps that bring the transfers to their receivers. */
void routes_send(PlanBuilder *planner, const Routes *routes, const Jobs *jobs);

/* Ends an exchange: makes its messages, and takes out the devices that all send to each other,
 * three or more, as all-to-alls. */
void end_exchange(PlanBuilder *planner, int exchange);

#endif
