/* Changes during a simulation: devices that compute slower, and links that carry less, from given
 * times on. Changes are read from a JSON file:
 *
 *     {"events": [{"at": 0.5, "devices": [3, 7], "slowdown": 12.53},
 *                 {"at": 0, "class": "h20", "slowdown": 2},
 *                 {"at": 1, "host": "a", "bandwidth": 0.5},
 *                 {"at": 2, "link": "remote", "bandwidth": 0.1},
 *                 {"at": 2, "link": ["a", "b"], "bandwidth": 0.1}]}
 *
 * `at` counts seconds from the start of the first step. With a slowdown of x, devices compute x
 * times as long as their class. `bandwidth` is a factor of the cluster file's bandwidth, of a kind
 * of link or of all links of devices. A later event replaces one of the same devices or links. */
#pragma once

#include <stdbool.h>

typedef struct Arena Arena;
typedef struct Cluster Cluster;

typedef struct Change {
    double at;        // seconds from the start of the first step
    bool computing;   // true: the rate of computing; false: that of links
    double rate;      // factor of the cluster file's rate
    int kind;         // kind of link; -1: all kinds
    int device_count; // number of devices that change
    const int *devices;
} Change;

typedef struct Changes {
    int count;
    const Change *at; // sorted by time; changes at one time keep the order of the file
} Changes;

/* Reads a file of events. Sets *error to a line with file, key and reason, or to NULL. */
Changes changes_read(Arena *arena, const Cluster *cluster, const char *path, const char **error);

/* Returns whether a change applies to an uplink: it changes the remote links, or all links, of all
 * devices of the uplink. */
bool change_of_uplink(const Cluster *cluster, const Change *change, int uplink);
