/* The cluster as the search sees it: groups of devices of one class, those of a host together, and
 * how many bytes each device may use. */
#ifndef PLANNER_SEARCH_DEVICES_H
#define PLANNER_SEARCH_DEVICES_H

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
    const Cluster *unbound; // the same without memory limits, so that compiling a strategy that
                            // does not fit says how much it needs
    int group_count, count;
    // in the order of their first devices. Where there are several groups, one more follows: all
    // devices, each counted as one of the slowest class with the least memory
    const DeviceGroup *groups;
    int slowest; // index of the slowest group
} Fleet;

/* Makes the fleet of a cluster. `memory` limits the bytes of every device; 0: the classes' limits
 * alone. */
Fleet devices_of(Arena *arena, const Cluster *cluster, int64_t memory);

/* Returns the group of a device. */
int devices_group(const Fleet *devices, int device);

/* Returns the bytes that a device may use; 0: not bounded. */
int64_t devices_memory(const Fleet *devices, int device);

/* Returns the slowest link between neighbours in a list of devices. */
Link devices_link(const Fleet *devices, const int *list, int count);

#endif
