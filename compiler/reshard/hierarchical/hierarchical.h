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
#include "reshard/plan_builder.h"

/* The hosts of a plan's devices. */

typedef struct Hosts {
    PlanBuilder *planner;
    int count;
    int *host; // by slot: numbered from 0
    int *rank; // by slot: the place among the devices of its host
} Hosts;

Hosts *hosts_of(PlanBuilder *planner);

int host_of(const Hosts *hosts, int device);
int rank_of(const Hosts *hosts, int device);

/* The devices of a list by host: as many lists as there are hosts, which the caller has room
 * for. */
void devices_by_host(Hosts *hosts, const Devices *devices, Devices *lists);

/* Returns the devices of a list, which are on one host, from the first on that has a rank or a
 * higher one, and then those in front of it. */
Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank);

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

/* Returns the same transfers, but that those who want a value get it from their own host where
 * somebody there has it. */
Transfers near_transfers(PlanBuilder *planner, const Transfers *transfers);

/* Divisions of a value by hosts: where hosts divide it differently, the borders of all together
 * give the finest slices. */

/* A host's part in a value that is divided among some of its devices. */
typedef struct Division {
    int host;
    Devices devices;
    int64_t *shares; // elements, by device
    int at;          // the device that has the slice at hand
    int64_t left;    // elements of its share behind that slice
} Division;

typedef Array(Division) Divisions;

/* Cuts [lo, hi) at all borders of the divisions: after begin_slices, each call gives the end of the
 * slice that begins at `lo`. */
void begin_slices(Divisions *divisions);
int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi);

/* Returns the device that has the slice at hand. */
int slice_device(const Division *division);

#endif
