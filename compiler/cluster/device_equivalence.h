/* Devices that are alike: sets of devices of a cluster, member by member of the same class,
 * together on hosts and processors where those of the other set are, and joined by equal links.
 * What the members of one do among themselves takes as long as what those of the other do.
 */
#ifndef CLUSTER_DEVICE_EQUIVALENCE_H
#define CLUSTER_DEVICE_EQUIVALENCE_H

#include "cluster/cluster.h"
#include "support/intern.h"

/* Returns the first set, of those that `known` was asked about, to which `count` devices are
 * alike; they are ascending, and the result is, which lives as long as `known`, a table of this
 * cluster and this function alone. */
const int *cluster_equivalent_devices(Intern *known, const Cluster *cluster, const int *devices,
                                      int count);

#endif
