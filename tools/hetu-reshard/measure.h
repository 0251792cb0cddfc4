/* Measurements that measure.c and measure_hosts.c share. */
#ifndef HETU_RESHARD_MEASURE_H
#define HETU_RESHARD_MEASURE_H

#include "timing.h"

#include <jansson.h>

enum { NAME_BYTES = 64, LEAST_MESSAGE = 1 << 9, LEAST_BYTES = 1 << 13, MOST_BYTES = 1 << 24 };

/* Layouts of the messages that are measured (verbs in measure.c). */
#define SEND_RECEIVE_TEXT "D{0:n} -> R{0:n}"
#define SEND_TEXT "F{0:h} -> S{0:h}"

/* The hosts of the ranks. */
typedef struct Hosts {
    int count, *of;                 // number of hosts; for each rank, the number of its host
    const char (*name)[NAME_BYTES]; // for each rank
    const int *processor;           // for each rank, its number on the host; -1: unknown
} Hosts;

/* Writes the ranks of a host to `ranks`; returns their number. */
int host_ranks(const Hosts *hosts, int host, int *ranks);

/* Several groups of `count` devices, which act at once. */
typedef struct Groups {
    const int *devices; // devices of all groups, group by group
    int count, groups;
    bool alone; // only the root has a processor for itself (cluster/cluster.h)
} Groups;

/* Returns one plan of the same case for all groups at once. */
Set set_of(Arena *arena, const char *pattern, const Groups *of, int64_t bytes);

/* Seconds by bytes, made monotonic: a point is at most the time of any larger one, since
 * disturbances only add time. Of several points of one size, only the last is kept. */
typedef struct Series {
    int count;
    Point at[32];
} Series;

void series_add(Series *series, double bytes, double seconds);
json_t *json_curve(const Curve *curve);

/* Prints on rank 0 what is measured now. */
void show_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Measures the links between several hosts: adds `remote`, `pairs` and `uplinks` to `links`. */
void measure_hosts(json_t *links, const Hosts *hosts, const Cluster *machine);

#endif
