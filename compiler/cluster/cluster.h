/* The cluster: which devices there are, on which hosts, and what links between them cost.
 *
 * A JSON file describes it:
 *
 *     {
 *       "classes": {"h800": {"memory": 85899345920}},
 *       "devices": [{"class": "h800", "host": "a", "count": 8}, {"class": "h800", "host": "b", "count": 8}],
 *       "links": {"local": {"latency": 3e-6, "bandwidth": 2e11}, "remote": {"latency": 1e-5, "bandwidth": 2.5e10}}
 *     }
 *
 * Devices are numbered in the order of the list. `local` links join devices of one host, `remote` ones those of different hosts; seconds
 * and bytes a second.
 */
#ifndef CLUSTER_CLUSTER_H
#define CLUSTER_CLUSTER_H

#include "layout/layout.h"

typedef struct Link {
    double latency;   // seconds a message
    double bandwidth; // bytes a second
} Link;

typedef struct ClusterDevice {
    const char *class;
    int host;       // equal for devices of one host
    int64_t memory; // bytes; 0: not known
} ClusterDevice;

typedef struct Cluster {
    int device_count;
    const ClusterDevice *devices;
    Link local, remote;
} Cluster;

/* Reads a cluster file; NULL after an error was reported. */
const Cluster *cluster_read(Arena *arena, Diag *diag, const char *path);

/* The host of a device; devices that the cluster does not list, and all of no cluster, are on host 0. */
int cluster_host(const Cluster *cluster, int device);

/* The lowest device of a layout that the cluster does not list; -1 when it lists all, or when there is none. */
int cluster_missing(const Cluster *cluster, const Layout *layout);

/* The link between two devices. */
Link cluster_link(const Cluster *cluster, int a, int b);

#endif
