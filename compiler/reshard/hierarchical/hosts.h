/* The hosts of a plan's devices. */
#ifndef RESHARD_HIERARCHICAL_HOSTS_H
#define RESHARD_HIERARCHICAL_HOSTS_H

#include "reshard/plan_builder.h"

typedef struct Hosts {
    PlanBuilder *planner;
    int count;
    int *host; // by slot: numbered from 0
    int *rank; // by slot: the place among the devices of its host
} Hosts;

Hosts *hosts_of(PlanBuilder *planner);

int host_of(const Hosts *hosts, int device);
int rank_of(const Hosts *hosts, int device);

/* The devices of a list by host: as many lists as there are hosts, which the caller has room
 * for. */
void devices_by_host(Hosts *hosts, const Devices *devices, Devices *lists);

/* The devices of a list, which are on one host, from the first on that has a rank or a higher one,
 * and then those in front of it. */
Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank);

#endif
