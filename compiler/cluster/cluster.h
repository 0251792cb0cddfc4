/* The cluster: which devices there are, on which hosts, how fast they compute, and what the links
 * between them cost. The cluster is read from a JSON file. Units are bytes, operations, seconds,
 * and bytes or operations a second. A rate that is missing is unknown.
 *
 *     {
 *       "classes": {
 *         "h800": {
 *           "memory": 85899345920,
 *           "memory_bandwidth": 3.35e12,  or a list [bytes touched, bytes a second], interpolated
 *           "row_bandwidth": 1e12,        for rows of 256 bytes that are not contiguous
 *           "page_bandwidth": 8e11,       for rows of 1,024 bytes, each on another page of 4 KiB
 *           "copy": 1e-7,                 seconds to start the copy of a box
 *           "sums": {"f32": 1e11}, "maxima": {"f32": 5e10},  elements combined a second
 *           "start": 4e-6,                seconds to start a kernel
 *           "overlap": 1.13,              slowdown while computing and communicating; default 1
 *           "arithmetic": 6e13,           operations a second outside of matrix products
 *           "products": {"bf16": [[1e9, 1e14], [1e12, 8e14]]}  [operations, operations a second]
 *         }
 *       },
 *       "devices": [{"class": "h800", "host": "a", "count": 8},
 *                   {"class": "h800", "host": "b", "count": 8}],  may have "processor": 0
 *       "links": {
 *         "local": {"latency": 3e-6, "bandwidth": 2e11},
 *         "remote": {"latency": 1e-5, "bandwidth": 2.5e10},
 *         "pairs": [{"between": ["a", "b"], "latency": 2e-5, "bandwidth": 1e10},
 *                   {"between": [[0, 1], [2, 3]], ...}],
 *         "uplinks": [{"of": "a", "bandwidth": 2.5e10}]   shared network cards (uplinks.h)
 *       }
 *     }
 *
 * Devices are numbered in the order of the list. Devices of a host with the same "processor" share
 * it and take turns; the rates of their class hold while all of them are busy. The link of two
 * devices is the first of `pairs` that joins them, where each end is a host or a list of devices.
 * Without one it is `local` on one host and `remote` between hosts. A link may have measurements,
 * which correct the time by latency and bandwidth:
 *
 *     "measured": [{"what": "all-reduce", "ranks": 4, "seconds": [[16384, 8e-5], [1048576, 1e-3]]}]
 *
 * "seconds" lists [bytes, seconds]. For most collectives these are the bytes of the tensor. For
 * all-to-all, send-receive and send, the bytes are what one device sends, times the number of
 * devices. In send-receive each device sends to one device; in send half of the devices send to the
 * other half. "groups": 2: two groups ran at once; bytes are of one group. "processors": 2:
 * all devices shared two processors. "alone": true: the root of a broadcast or reduction had its
 * own processor. `hetu-reshard --measure` writes such a file. */
#pragma once

#include "binding/binding.h"
#include "cluster/uplinks.h"
#include "hetu/reshard.h"
#include "layout/layout.h"

/* A curve is a quantity by size, given by points of ascending sizes. */
typedef struct Point {
    double size, value;
} Point;
typedef struct Curve {
    int count;
    const Point *at;
} Curve;

/* Returns the value at a size: a power law through the two points around the size; below the first
 * point or above the last, the value of that point. Returns 0 for a curve that has no points. */
double curve_at(const Curve *curve, double size);

typedef struct Measured Measured;

typedef struct Link {
    double latency;   // seconds a message
    double bandwidth; // bytes a second
    int measured_count;
    const Measured *measured;
} Link;

enum { CLUSTER_DTYPES = HT_I64 + 1, ROW_BYTES = 256, PAGE_ROW_BYTES = 1024, PAGE_BYTES = 4096 };

typedef struct DeviceClass {
    const char *name;
    int64_t memory;                 // bytes; 0 here or in the next line: unknown
    double start, copy, arithmetic; // seconds to start a kernel, or a copy; operations a second
    double overlap; // factor by which computing and communicating slow each other down, at least 1
    Curve memory_bandwidth;             // bytes a second, by the bytes that are touched
    Curve row_bandwidth;                // the same for rows of ROW_BYTES that are not contiguous
    Curve page_bandwidth;               // the same for rows of PAGE_ROW_BYTES, each on another page
    double combined[2][CLUSTER_DTYPES]; // sums, maxima: elements a second by ht_dtype; 0: unknown
    Curve products[CLUSTER_DTYPES];     // by ht_dtype: operations a second, by operations of a call
} DeviceClass;

typedef struct ClusterDevice {
    const DeviceClass *class;
    int host;      // number of the host, equal for devices of one host
    int processor; // number of the processor, from 0 on without gaps
} ClusterDevice;

/* One end of a pair: a host, or a list of devices. */
typedef struct LinkEnd {
    int host; // -1: `devices` are the end
    int device_count;
    const int *devices;
} LinkEnd;

/* An entry of the list `pairs`. */
typedef struct LinkPair {
    LinkEnd end[2];
    Link link;
} LinkPair;

typedef struct Cluster {
    int device_count, processor_count;
    const ClusterDevice *devices;
    int host_count;
    const char *const *hosts; // by host: its name
    Link local, remote;
    int pair_count;
    const LinkPair *pairs;
    Uplinks uplinks;
} Cluster;

/* Read a cluster file into the arena; return NULL after an error. cluster_read warns of unknown
 * keys, which are errors in cluster_read_strict. */
const Cluster *cluster_read(Arena *arena, Diag *diag, const char *path);
const Cluster *cluster_read_strict(Arena *arena, Diag *diag, const char *path);

/* Returns the class of a device; NULL when the cluster is NULL or does not list the device. */
const DeviceClass *cluster_class(const Cluster *cluster, int device);

/* Returns how many devices share the processor of a listed device, this device included. */
int cluster_sharing(const Cluster *cluster, int device);

/* Returns the number of a device's host: 0 when the cluster is NULL or does not list the device. */
int cluster_host(const Cluster *cluster, int device);

/* Returns the lowest device of a layout that the cluster lacks; -1: none, or no cluster. */
int cluster_missing(const Cluster *cluster, const Layout *layout);

/* Returns the link between two devices; assumes shared memory when the cluster is NULL. */
Link cluster_link(const Cluster *cluster, int a, int b);

enum { LINK_LOCAL, LINK_REMOTE, LINK_PAIRS };
/* Return the kind of the link between two devices (LINK_LOCAL, LINK_REMOTE, or LINK_PAIRS + index
 * of `pairs`), and the number of kinds. */
int cluster_link_kind(const Cluster *cluster, int a, int b);
int cluster_link_kinds(const Cluster *cluster);

/* Returns the kind of the link of `pairs` between two hosts; -1: there is none. */
int cluster_link_between(const Cluster *cluster, const char *a, const char *b);

/* Returns the number of a host by its name; -1: there is none. */
int cluster_host_number(const Cluster *cluster, const char *name);

/* Returns the class with a name; NULL: no device has it. */
const DeviceClass *cluster_class_named(const Cluster *cluster, const char *name);

/* Return the seconds, by latency and bandwidth, of a message, and of a verb among n devices. A
 * broadcast or reduce is a chain, any other verb a ring. In an all-to-all or exchange, `bytes` is
 * the sum over all messages, and each device sends bytes / n. */
double link_seconds(const Link *link, double bytes);
double verb_seconds(ht_verb verb, int n, double bytes, const Link *link);

/* Returns the word for a verb that communicates: "all-reduce"; "send-receive" for exchanges. */
const char *verb_word(ht_verb verb);

/* A link between two hosts that carries less than the cluster file says. */
typedef struct LoweredLink {
    int host[2];
    double bandwidth; // bytes a second of a message
} LoweredLink;

/* Returns the cluster with lowered links (lowered.c). If all links of a host are lowered, its card
 * is: the host gets an uplink, as slow as the fastest of these links. Any other lowered link is the
 * two hosts' own, whose devices share it.
 *
 *     LoweredLink links[] = {{{0, 3}, 2.5e6}, {{1, 3}, 2.6e6}, {{2, 3}, 2.5e6}};
 *     const Cluster *now = cluster_lowered(arena, cluster, links, 3);   host 3 has a slow card */
const Cluster *cluster_lowered(Arena *arena, const Cluster *cluster, const LoweredLink *links,
                               int count);

/* Returns the first set, of this call and earlier calls, that is equivalent to `count` ascending
 * devices. Equal work takes equally long on equivalent sets: member by member their classes and
 * links are equal, and hosts and processors are shared alike (device_equivalence.c). The table
 * `known` serves only this function and this cluster; the result lives in the table's arena.
 *
 *     two hosts of 8 equal devices: {0,1} ~ {2,3} ~ {8,9}, but not {0,8} */
const int *cluster_equivalent_devices(Intern *known, const Cluster *cluster, const int *devices,
                                      int count);
