/* Hosts: two-tier plans, which move values inside hosts and across them in steps of their own. */
#ifndef RESHARD_HOSTS_H
#define RESHARD_HOSTS_H

#include "reshard/loads.h"

/* The hosts of a plan's devices. */
typedef struct Hosts {
    Planner *planner;
    int count;
    int *host; // by slot: numbered from 0
    int *rank; // by slot: the place among the devices of its host
} Hosts;

Hosts *hosts_of(Planner *planner);

int host_of(const Hosts *hosts, int device);
int rank_of(const Hosts *hosts, int device);

/* The devices of a list by host. */
Devices *devices_by_host(Hosts *hosts, const Devices *devices);

/* The devices of a list, which are on one host, from the first on that has a rank or a higher one, and then those in front of it. */
Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank);

/* ---- slices ---- */

/* A host's part in a value that is divided among some of its devices. */
typedef struct Division {
    int host;
    Devices devices;
    int64_t *shares; // elements, by device
    int at;          // the device that has the slice at hand
    int64_t left;    // elements of its share behind that slice
} Division;

typedef Array(Division) Divisions;

/* Cuts [lo, hi) at all borders of the divisions: after begin_slices, each call gives the end of the slice that begins at `lo`. */
void begin_slices(Divisions *divisions);
int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi);

/* The device that has the slice at hand. */
int slice_device(const Division *division);

/* ---- tiers ---- */

/* Appends the transfer of a segment that lies at one device, as the target stores it, to the others of a list. */
void transfer_inside(Hosts *hosts, Transfers *transfers, Segment segment, int holder, const Devices *targets);

/* Divides the reductions of tasks in two tiers. `local` gets the tasks that are made inside hosts, `crossing` those that combine what hosts
 * have made; `inside` the transfers that remain inside hosts when both are done. */
void tier_reductions(Hosts *hosts, const Tasks *tasks, Tasks *local, Tasks *crossing, Transfers *inside);

/* Divides transfers in two tiers: a value goes once to each host that lacks it, each part of it to one of the devices that want it; inside a
 * host it goes to all. */
void tier_transfers(Hosts *hosts, const Transfers *transfers, Transfers *crossing, Transfers *local);

/* The same transfers, but that those who want a value get it from their own host where somebody there has it. */
Transfers near_transfers(Planner *planner, const Transfers *transfers);

#endif
