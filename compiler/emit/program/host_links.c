/* Writes what the cluster file says about links between hosts, by which the running program finds
 * links that have become slow (ht_register_links of <hetu/image.h>). */
#include "emit/program/tables.h"

#include "cluster/cluster.h"
#include "emit/words.h"

#include <math.h>

/* Returns the number of hosts whose devices an uplink serves. */
static int hosts_of(const Cluster *cluster, int uplink) {
    const Uplinks *uplinks = &cluster->uplinks;
    int count = 0, last = -1;
    for (int d = 0; d < cluster->device_count; d++)
        for (int i = uplinks->first[d]; i < uplinks->first[d + 1]; i++)
            if (uplinks->of_device[i] == uplink && cluster_host(cluster, d) != last) {
                last = cluster_host(cluster, d);
                count++;
            }
    return count ? count : 1;
}

/* Returns the bytes a second of one message between two devices, while each host of an uplink that
 * the message passes may send one. */
static double message_bandwidth(const Cluster *cluster, const int *hosts, int from, int to) {
    int passed[UPLINKS_PASSED];
    double bandwidth = cluster_link(cluster, from, to).bandwidth;
    for (int k = uplinks_passed(cluster, from, to, passed); k--;)
        bandwidth = fmin(bandwidth, uplink_rate(cluster, passed[k]) / hosts[passed[k] / 2]);
    return bandwidth;
}

typedef struct HostLink {
    double latency, there, back; // seconds; bytes a second in each direction
} HostLink;

static HostLink link_of(const Cluster *cluster, const int *hosts, int a, int b) {
    return (HostLink){cluster_link(cluster, a, b).latency, message_bandwidth(cluster, hosts, a, b),
                      message_bandwidth(cluster, hosts, b, a)};
}

static bool same_link(const HostLink *a, const HostLink *b) {
    return a->latency == b->latency && a->there == b->there && a->back == b->back;
}

/* Returns, by host, its first device; -1: it has none. */
static int *first_devices(Arena *arena, const Cluster *cluster) {
    int *first = arena_array(arena, int, cluster->host_count);
    for (int h = 0; h < cluster->host_count; h++) first[h] = -1;
    for (int d = cluster->device_count; d--;) first[cluster_host(cluster, d)] = d;
    return first;
}

/* Writes the names of hosts, and the devices of hosts as runs of a host and a number of devices. */
static void emit_hosts(Text *out, Arena *arena, const Cluster *cluster, const char *prefix) {
    text_print(out, "static const char *const %s_hosts[] = {", prefix);
    for (int h = 0; h < cluster->host_count; h++)
        text_print(out, "\"%s\", ", c_string(arena, cluster->hosts[h]));
    text_print(out, "0};\nstatic const int %s_devices[] = {", prefix);
    for (int d = 0, count; d < cluster->device_count; d += count) {
        for (count = 1; d + count < cluster->device_count &&
                        cluster_host(cluster, d + count) == cluster_host(cluster, d);
             count++);
        text_print(out, "%d, %d, ", cluster_host(cluster, d), count);
    }
    text_string(out, "-1};\n");
}

void emit_host_links(Arena *arena, const Cluster *cluster, const char *prefix, Text *declarations,
                     Text *calls) {
    if (!cluster || cluster->host_count < 2) return;
    int *first = first_devices(arena, cluster),
        *hosts = arena_array(arena, int, cluster->uplinks.count);
    for (int u = 0; u < cluster->uplinks.count; u++) hosts[u] = hosts_of(cluster, u);
    emit_hosts(declarations, arena, cluster, prefix);
    HostLink usual = link_of(cluster, hosts, first[0], first[1]);
    text_print(declarations,
               "static const double %s_links[] = { // latency, there, back; hosts before others\n"
               "    %.6g, %.6g, %.6g,\n",
               prefix, usual.latency, usual.there, usual.back);
    for (int a = 0; a < cluster->host_count; a++)
        for (int b = a + 1; b < cluster->host_count; b++) {
            HostLink own = link_of(cluster, hosts, first[a], first[b]);
            if (!same_link(&own, &usual))
                text_print(declarations, "    %d, %d, %.6g, %.6g, %.6g,\n", a, b, own.latency,
                           own.there, own.back);
        }
    text_print(declarations,
               "    -1};\n"
               "void ht_register_links(const char *const *hosts, const int *devices, const double "
               "*links);\n");
    text_print(calls, "    ht_register_links(%s_hosts, %s_devices, %s_links);\n", prefix, prefix,
               prefix);
}
