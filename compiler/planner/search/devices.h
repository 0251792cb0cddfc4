/* The cluster as the search sees it: groups of devices of the same class, ordered by host, and the
 * bytes that each device may use. */
#pragma once

#include "cluster/cluster.h"
#include "support/array.h"

typedef struct DeviceGroup {
    const DeviceClass *class;
    int64_t memory; // bytes that a device may use; 0: not bounded
    int count;
    const int *devices; // ordered by host
    int host_most;      // the most devices on one host
} DeviceGroup;

typedef struct Fleet {
    const Cluster *cluster; // the cluster as given
    const Cluster *unbound; // the cluster without memory limits: even a strategy that exceeds the
                            // memory compiles, so that its bytes are known
    int group_count, count;
    // one for each class, in the order of the first devices; if there are several,
    // groups[group_count] has all devices, counted as the slowest class with the least memory
    const DeviceGroup *groups;
    int slowest; // index of the slowest group
} Fleet;

/* Returns a cluster's fleet. `memory` limits the bytes of every device; 0: the classes' limits. */
Fleet devices_of(Arena *arena, const Cluster *cluster, int64_t memory);

/* Returns the index of a device's group. */
int devices_group(const Fleet *devices, int device);

/* Returns the bytes that a device may use; 0: not bounded. */
int64_t devices_memory(const Fleet *devices, int device);

/* Returns the slowest link between neighbours in a ring of devices; one device: the local link. */
Link devices_link(const Fleet *devices, const int *list, int count);
