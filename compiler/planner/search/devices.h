/* The cluster as the search sees it: devices by class, those of a host together, and how many bytes
 * each may have. */
#ifndef PLANNER_SEARCH_DEVICES_H
#define PLANNER_SEARCH_DEVICES_H

#include "cluster/cluster.h"
#include "support/array.h"

typedef struct DeviceGroup {
    const DeviceClass *class;
    int64_t memory; // bytes that a device may have; 0: not bounded
    int count;
    const int *devices; // those of a host one after the other
    int host_most;      // on one host
} DeviceGroup;

typedef struct Fleet {
    const Cluster *cluster; // as given
    const Cluster *unbound; // the same without bounds on memory, so that trials of what does not
                            // fit say how much it needs
    int group_count, count;
    // in the order of their first devices; where there are several, one more behind them: all
    // devices, each taken for one of the slowest class and the least memory
    const DeviceGroup *groups;
    int slowest; // of the groups
} Fleet;

/* `memory`: bytes that no device may have more than; 0: as classes say. */
Fleet devices_of(Arena *arena, const Cluster *cluster, int64_t memory);

/* Returns the group of a device. */
int devices_group(const Fleet *devices, int device);

/* Returns the bytes that a device may have; 0: not bounded. */
int64_t devices_memory(const Fleet *devices, int device);

/* Returns the slowest link among devices that stand in a row. */
Link devices_link(const Fleet *devices, const int *list, int count);

#endif
