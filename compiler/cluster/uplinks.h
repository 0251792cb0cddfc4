/* Uplinks: the network cards of hosts and the uplinks of switches. Several devices share an
 * uplink; messages between hosts that leave or enter these devices pass it.
 *
 *     "links": {"local": ..., "remote": ...,
 *               "uplinks": [{"of": "a", "bandwidth": 2.5e7},
 *                           {"of": ["b", "c"], "bandwidth": 1e9, "in": 2e9},
 *                           {"of": [6, 7], "bandwidth": 1e8, "duplex": false}]}
 *
 * An uplink may have `burst`: so many bytes pass at once after it has been idle, as through a token
 * bucket, by which clouds and `tc` shape links. Meanwhile the bucket refills at the uplink's rate.
 *
 * `of` is a host, a list of hosts, or a list of devices of one host. `bandwidth` counts bytes a
 * second out of the devices and, without `in`, into them. Unless `duplex`, both directions share
 * `bandwidth`. Messages from a to b pass out by the uplink of a and in by the uplink of the switch;
 * messages from b to c pass neither. A device of no uplink has a card as fast as `remote`. */
#pragma once

#include "hetu/reshard.h"

#include <stdbool.h>

typedef struct Arena Arena;
typedef struct Cluster Cluster;
typedef struct Link Link;

typedef struct Uplink {
    double rate[2]; // bytes a second: out of the devices, and into them
    double burst;   // bytes that pass at once, in each direction
    bool duplex;    // false: both directions share rate[0]
    int device_count;
    int host; // at least 0: it serves devices of this host; -1: it serves whole hosts
} Uplink;

/* The uplinks of a cluster, and those of device d: of_device[first[d]] up to, not with,
 * of_device[first[d + 1]], ascending. */
typedef struct Uplinks {
    int count;
    const Uplink *at;
    const int *first, *of_device;
} Uplinks;

/* Most uplinks of one device, and most uplinks that a message passes. */
enum { UPLINKS_OF_DEVICE = 8, UPLINKS_PASSED = 2 * UPLINKS_OF_DEVICE };

/* Writes to `directions` the directions of uplinks that a message passes; returns their number. A
 * direction is 2 * uplink, plus 1 when it leads into the devices of a duplex uplink. */
int uplinks_passed(const Cluster *cluster, int from, int to, int directions[UPLINKS_PASSED]);

/* Return the number of directions of a cluster's uplinks, and the bytes a second of a direction. */
int uplink_directions(const Cluster *cluster);
double uplink_rate(const Cluster *cluster, int direction);

/* Return the seconds that a direction's burst takes at its rate, and the largest burst of a
 * device's uplinks in bytes. */
double uplink_bucket(const Cluster *cluster, int direction);
double device_burst(const Cluster *cluster, int device);

/* The bytes added to each direction since the last uplink_loads_clear. */
typedef struct UplinkLoads {
    const Cluster *cluster;
    double *bytes; // by direction
    int *passed;   // the directions with bytes
    int passed_count;
    int *members; // scratch, by uplink: number of a collective's devices; 0 between calls
    int *on_host; // scratch, by host: the same number
} UplinkLoads;

UplinkLoads uplink_loads(Arena *arena, const Cluster *cluster);
void uplink_loads_clear(UplinkLoads *loads);

/* Adds the bytes of a message from one device to another. */
void uplink_loads_message(UplinkLoads *loads, int from, int to, double bytes);

/* Adds a collective on a tensor of `bytes` bytes, as the runtime's own collectives are carried out:
 * every member sends to every other one (runtime/exchange/collective_rounds.h). Those of MPI and
 * NCCL may send less. The root of a broadcast or reduce is the first device.
 *
 *     all-reduce of n bytes on p devices, k of them on a host: 2 n k (p - k) / p out of the host */
void uplink_loads_collective(UplinkLoads *loads, ht_verb verb, const int *devices, int count,
                             double bytes);

/* Returns `link`, at most as fast as one message's share of each uplink while `rings` rings run at
 * once. Ring r joins devices[r], devices[r + rings], ..., at indices below `count`. */
Link uplinks_shared(const Cluster *cluster, Link link, const int *devices, int count, int rings);
