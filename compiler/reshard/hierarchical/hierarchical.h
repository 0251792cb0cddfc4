/* Two tiers: what moves inside hosts and what across them, for plans that do so in steps of their
 * own.
 *
 * Each host reduces the contributions that its devices hold; what hosts have made is reduced across
 * them (reduce.c). A value goes to another host once, in parts to several of the devices that want
 * it there, which hand them on (transfer.c).
 */
#ifndef RESHARD_HIERARCHICAL_HIERARCHICAL_H
#define RESHARD_HIERARCHICAL_HIERARCHICAL_H

#include "reshard/reduce/reduce.h"
#include "reshard/hierarchical/hosts.h"

/* Appends the transfer of a segment that lies at one device, as the target stores it, to the others
 * of a list. */
void push_inside(Hosts *hosts, Transfers *transfers, Segment segment, int holder,
                 const Devices *targets);

/* Divides the reductions of tasks in two tiers. `local` gets the tasks that are made inside hosts,
 * `crossing` those that combine what hosts have made; `inside` the transfers that remain inside
 * hosts when both are done. */
void tier_reductions(Hosts *hosts, const Tasks *tasks, Tasks *local, Tasks *crossing,
                     Transfers *inside);

/* Divides transfers in two tiers: a value goes once to each host that lacks it, each part of it to
 * one of the devices that want it; inside a host it goes to all. */
void tier_transfers(Hosts *hosts, const Transfers *transfers, Transfers *crossing,
                    Transfers *local);

/* The same transfers, but that those who want a value get it from their own host where somebody
 * there has it. */
Transfers near_transfers(PlanBuilder *planner, const Transfers *transfers);

#endif
