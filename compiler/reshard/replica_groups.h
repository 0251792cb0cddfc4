/* Replica groups: sets of devices that carry out equal conversions, independently of each other.
 *
 * If both layouts cut a dimension alike, or replicate alike, each piece or copy is converted
 * among its own devices: [0-7]{0:4,sum:2} to [0-7]{0:4,dup:2} is the conversion {sum:2} to {dup:2}
 * in four replica groups of two devices. So planning time and the size of the output grow with the
 * size of a replica group, not with the number of devices.
 *
 * On a cluster links are shared, so all devices of a conversion are one replica group. Equivalent
 * sets (cluster_equivalent_devices) take the first set's names: equal conversions are planned once.
 *
 *     ReplicaGroups groups = replica_groups_of(arena, cluster, alike, conversions, count);
 *     const Plan *plan = reshard_plan_all(arena, cluster, groups.first, count);
 */
#pragma once

#include "cluster/cluster.h"
#include "reshard/reshard.h"

typedef struct ReplicaGroups {
    // by tensor: the conversion of the first replica group, in terms of its devices' names
    const Conversion *first;
    const int *name; // by member: its name in the plan: 0, 1, ... in the order of the first group's
                     // devices, so that equal groups have equal plans; on a cluster, the devices of
                     // the first equivalent group
    int count, size; // number of replica groups, and of members of each group
    const int *devices; // by replica group and member; members i of all groups correspond
    int least, span;    // device numbers are in [least, least + span)
    // by device - least: the device's index within its replica group; -1: it takes no part
    const int *member;
} ReplicaGroups;

/* Returns the replica groups of conversions that are planned together: one group on a cluster, or
 * if the conversions split differently. `alike` is the table of cluster_equivalent_devices; NULL:
 * on a cluster, devices keep their own numbers. */
ReplicaGroups replica_groups_of(Arena *arena, const Cluster *cluster, Intern *alike,
                                const Conversion *conversions, int count);

/* Returns the name (ReplicaGroups.name) that the plan has for a device: the name of its counterpart
 * in the first replica group; -1: the device takes no part. */
int replica_groups_name(const ReplicaGroups *replica_groups, int device);

/* Returns the bytes that all replica groups receive; `plan` is that of the first group. */
int64_t replica_groups_bytes(const ReplicaGroups *replica_groups, const Plan *plan);
