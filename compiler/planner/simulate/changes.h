/* Changes: devices that compute slower, and links that carry less, from given times on. A JSON file
 * has them:
 *
 *     {"events": [{"at": 0.5, "devices": [3, 7], "slowdown": 12.53},
 *                 {"at": 0, "class": "h20", "slowdown": 2},
 *                 {"at": 1, "host": "a", "bandwidth": 0.5},
 *                 {"at": 2, "link": "remote", "bandwidth": 0.1},
 *                 {"at": 2, "link": ["a", "b"], "bandwidth": 0.1}]}
 *
 * `at` counts seconds from the begin of the first step. With a slowdown of x devices take x times
 * as long to compute as their class says; the bandwidth of a link is that of the cluster file times
 * what is written. Devices' bandwidth is that of all links that they have. What is written later
 * for the same holds from then on in place of what was before.
 */
#ifndef PLANNER_SIMULATE_CHANGES_H
#define PLANNER_SIMULATE_CHANGES_H

#include "cluster/cluster.h"

typedef struct Change {
    double at;
    bool computing;   // of computing, by `rate`; else of links
    double rate;      // over that of the cluster file
    int kind;         // the link; -1: all
    int device_count; // those that change
    const int *devices;
} Change;

typedef struct Changes {
    int count;
    const Change *at; // in the order of their times, and of one time as written
} Changes;

/* Reads the file; *error is a line with file, key and reason after a mistake, else NULL. */
Changes changes_read(Arena *arena, const Cluster *cluster, const char *path, const char **error);

#endif
