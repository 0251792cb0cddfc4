/* Replica groups: sets of devices that do the same in a conversion, independently of each other.
 *
 * Where both layouts cut a dimension alike, or replicate alike, each piece or copy is converted
 * among its own devices: [0-7]{0:4,sum:2} to [0-7]{0:4,dup:2} is the conversion {sum:2} to {dup:2}
 * in four replica groups of two devices. So planning time and the size of the output grow with a
 * replica group, not with all devices.
 *
 * On a cluster links are shared, so all devices are one replica group; equivalent replica groups
 * (cluster_equivalent_devices) take the device names of the first of them, so that equal
 * conversions are planned once.
 *
 *     ReplicaGroups groups = replica_groups_of(arena, cluster, alike, conversions, count);
 *     const Plan *plan = reshard_plan_all(arena, cluster, groups.first, count);
 */
#ifndef RESHARD_REPLICA_GROUPS_H
#define RESHARD_REPLICA_GROUPS_H

#include "cluster/cluster.h"
#include "reshard/reshard.h"

typedef struct ReplicaGroups {
    // by tensor: the conversion of the first replica group, by its devices' names
    const Conversion *first;
    const int *name; // by member: its name in the plan: 0, 1, ... in the order of the first group's
                     // devices, so that equal groups have equal plans; on a cluster, the devices of
                     // the first equivalent group
    int count, size;
    const int *devices; // by replica group and member; member i of each group corresponds to member
                        // i of the first
    int least, span;    // least device number, and last minus least + 1
    const int
        *member; // by device minus `least`: index in `devices`; -1: it has nothing of the tensor
} ReplicaGroups;

/* Returns the replica groups of conversions that are planned together; a single group where they do
 * not split alike. `alike` is cluster_equivalent_devices's table; NULL: on a cluster, devices keep
 * their own numbers. */
ReplicaGroups replica_groups_of(Arena *arena, const Cluster *cluster, Intern *alike,
                                const Conversion *conversions, int count);

/* Returns the plan's name of a device: that of the corresponding device of the first replica group;
 * -1: none. */
int replica_groups_name(const ReplicaGroups *replica_groups, int device);

/* Returns the bytes that all replica groups together receive by the first one's plan. */
int64_t replica_groups_bytes(const ReplicaGroups *replica_groups, const Plan *plan);

#endif
