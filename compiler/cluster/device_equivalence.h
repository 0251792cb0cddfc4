/* Equivalent sets of devices: member by member they have the same class, share hosts and processors
 * in the same way, and are joined by equal links. So equal work among the members takes equally
 * long in each set, and conversions within them are planned once.
 *
 *     two hosts of 8 equal devices: {0,1} ~ {2,3} ~ {8,9}, but not {0,8}
 */
#ifndef CLUSTER_DEVICE_EQUIVALENCE_H
#define CLUSTER_DEVICE_EQUIVALENCE_H

#include "cluster/cluster.h"
#include "support/intern.h"

/* Returns the first set that is equivalent to these `count` ascending devices among those of
 * earlier calls. `known` is a table for this cluster and function alone; the result lives as long
 * as it. */
const int *cluster_equivalent_devices(Intern *known, const Cluster *cluster, const int *devices,
                                      int count);

#endif
