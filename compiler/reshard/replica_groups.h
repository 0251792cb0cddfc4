/* ReplicaGroups: sets of devices that do the same in a conversion, each for itself.
 *
 * Where both layouts cut a dimension alike, or copy alike, a piece or copy is converted among the
 * devices that have it: [0-7]{0:4,sum:2} to [0-7]{0:4,dup:2} is the conversion {sum:2} to {dup:2},
 * by four replica groups of two. So the work of planning, and the size of what is written, grow
 * with a replica group, not with the devices.
 *
 * On a cluster all devices are one replica group, since links are shared; replica groups of devices
 * that are alike (cluster/device_equivalence.h) have the names of the first of them, so that what
 * they convert alike is planned once.
 *
 *     ReplicaGroups replica groups = replica_groups_of(arena, cluster, alike, conversions, count);
 *     const Plan *plan = reshard_plan_all(arena, cluster, replica groups.first, count);
 */
#ifndef RESHARD_REPLICA_GROUPS_H
#define RESHARD_REPLICA_GROUPS_H

#include "cluster/device_equivalence.h"
#include "reshard/reshard.h"

typedef struct ReplicaGroups {
    // by tensor: what the first replica group converts, by its devices' names
    const Conversion *first;
    const int *name; // by member: 0, 1, ... in the order of the first replica group's devices, so
                     // that what other replica groups convert alike is the same; with a cluster the
                     // devices of the first replica group that was alike
    int count, size;
    const int *devices; // replica group by replica group; member i of each does what member i of
                        // the first does
    int least, span;    // of device numbers
    const int *member;  // by device from `least` on: its place in its replica group; -1: it has
                        // nothing of the tensor
} ReplicaGroups;

/* Returns the replica groups of conversions that are planned together; one, of all devices,
 * where they do not fall apart alike, and with a cluster. `alike` is
 * cluster_equivalent_devices's table, for those that go by it; NULL: on a cluster, devices have
 * names of their own. */
ReplicaGroups replica_groups_of(Arena *arena, const Cluster *cluster, Intern *alike,
                                const Conversion *conversions, int count);

/* Returns the name of the device of the first replica group that does what `device` does; -1:
 * there is none. */
int replica_groups_name(const ReplicaGroups *replica_groups, int device);

/* Returns the bytes that all replica groups receive together by the plan of the first. */
int64_t replica_groups_bytes(const ReplicaGroups *replica_groups, const Plan *plan);

#endif
