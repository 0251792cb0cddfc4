/* Hierarchical conversions: plans whose steps move data first inside hosts and then across them, or
 * first across hosts and then inside them.
 *
 * A hierarchical reduction reduces the contributions of each host's devices inside the host, then
 * the hosts' results across hosts (reduce.c). A hierarchical transfer sends a value once to each
 * other host, in slices to several of the host's targets, which pass them on (transfer.c).
 *
 *     all-reduce on hosts {0,1} and {2,3}:    reduce-scatter inside {0,1} and {2,3};
 *         all-reduce {0,2} and {1,3};    all-gather inside {0,1} and {2,3} */
#pragma once

#include "reshard/reduce/reduce.h"
#include "reshard/plan_builder.h"

/* The hosts of a plan's devices, and each device's rank on its host. */

typedef struct Hosts {
    PlanBuilder *planner;
    int count;
    int *host; // by slot: number of the host, from 0
    int *rank; // by slot: rank among the devices of its host
} Hosts;

Hosts *hosts_of(PlanBuilder *planner);

int host_of(const Hosts *hosts, int device);
int rank_of(const Hosts *hosts, int device);

/* Splits a list of devices by host into `lists`, which has an entry for each host. */
void devices_by_host(Hosts *hosts, const Devices *devices, Devices *lists);

/* Returns a list of devices of one host, rotated so that the first device with at least this rank
 * on the host comes first; not rotated if no device has such a rank. */
Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank);

/* Appends the transfer of a segment's final value from `holder` to the other `targets`. */
void push_inside(Hosts *hosts, Transfers *transfers, Segment segment, int holder,
                 const Devices *targets);

/* Splits the reductions of tasks hierarchically: `local` gets the tasks inside hosts, `crossing`
 * the tasks that combine the hosts' results, `inside` the subsequent transfers inside hosts. */
void tier_reductions(Hosts *hosts, const Tasks *tasks, Tasks *local, Tasks *crossing,
                     Transfers *inside);

/* Splits transfers hierarchically: `crossing` gets transfers that bring a value once to each host
 * that lacks it, each slice to one of the receivers; `local` gets transfers inside hosts. */
void tier_transfers(Hosts *hosts, const Transfers *transfers, Transfers *crossing,
                    Transfers *local);

/* Returns the transfers, split so that receivers on a holder's host get the value from there. */
Transfers near_transfers(PlanBuilder *planner, const Transfers *transfers);

/* ---- divisions: hosts divide a value differently; all borders cut the finest slices ---- */

/* A host's division of a value among some of its devices. */
typedef struct Division {
    int host;
    Devices devices;
    int64_t *shares; // by device: elements of its share
    int at;          // index of the device that has the current slice
    int64_t left;    // elements of that device's share after the current slice
} Division;

typedef Array(Division) Divisions;

/* Iterates over the finest slices of [lo, hi): next_slice returns the end of the slice at `lo`. */
void begin_slices(Divisions *divisions);
int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi);

/* Returns the device that has the current slice. */
int slice_device(const Division *division);
