/* Finds the uplinks that messages between hosts pass, their rates and bursts, and adds up loads. */
#include "cluster/uplinks.h"

#include "cluster/cluster.h"
#include "support/arena.h"

#include <math.h>

static bool has_uplink(const Uplinks *uplinks, int device, int uplink) {
    for (int i = uplinks->first[device]; i < uplinks->first[device + 1]; i++)
        if (uplinks->of_device[i] == uplink) return true;
    return false;
}

/* Writes the directions, in or out, of uplinks of `of` that `other` lacks; returns how many. */
static int add_passed(const Uplinks *uplinks, int of, int other, bool into, int *directions) {
    int count = 0;
    for (int i = uplinks->first[of]; i < uplinks->first[of + 1]; i++) {
        int uplink = uplinks->of_device[i];
        if (!has_uplink(uplinks, other, uplink))
            directions[count++] = 2 * uplink + (into && uplinks->at[uplink].duplex);
    }
    return count;
}

int uplinks_passed(const Cluster *cluster, int from, int to, int directions[UPLINKS_PASSED]) {
    if (!cluster || !cluster->uplinks.count || from >= cluster->device_count ||
        to >= cluster->device_count || cluster_host(cluster, from) == cluster_host(cluster, to))
        return 0;
    int count = add_passed(&cluster->uplinks, from, to, false, directions);
    return count + add_passed(&cluster->uplinks, to, from, true, directions + count);
}

int uplink_directions(const Cluster *cluster) { return cluster ? 2 * cluster->uplinks.count : 0; }

double uplink_rate(const Cluster *cluster, int direction) {
    return cluster->uplinks.at[direction / 2].rate[direction % 2];
}

double uplink_bucket(const Cluster *cluster, int direction) {
    return cluster->uplinks.at[direction / 2].burst / uplink_rate(cluster, direction);
}

double device_burst(const Cluster *cluster, int device) {
    double burst = 0;
    if (!uplink_directions(cluster) || device >= cluster->device_count) return 0;
    const Uplinks *uplinks = &cluster->uplinks;
    for (int u = uplinks->first[device]; u < uplinks->first[device + 1]; u++)
        burst = fmax(burst, uplinks->at[uplinks->of_device[u]].burst);
    return burst;
}

UplinkLoads uplink_loads(Arena *arena, const Cluster *cluster) {
    int directions = uplink_directions(cluster);
    return (UplinkLoads){.cluster = cluster,
                         .bytes = arena_array(arena, double, directions),
                         .passed = arena_array(arena, int, directions),
                         .members = arena_array(arena, int, directions / 2),
                         .on_host = arena_array(arena, int, directions ? cluster->host_count : 0)};
}

void uplink_loads_clear(UplinkLoads *loads) {
    while (loads->passed_count) loads->bytes[loads->passed[--loads->passed_count]] = 0;
}

static void add_bytes(UplinkLoads *loads, int direction, double bytes) {
    if (bytes > 0 && loads->bytes[direction] == 0) loads->passed[loads->passed_count++] = direction;
    loads->bytes[direction] += bytes;
}

void uplink_loads_message(UplinkLoads *loads, int from, int to, double bytes) {
    int passed[UPLINKS_PASSED];
    for (int k = uplinks_passed(loads->cluster, from, to, passed); k--;)
        add_bytes(loads, passed[k], bytes);
}

/* Adds `step` (1 or -1) to the counts of uplinks and hosts for each member of a collective. */
static void count_members(UplinkLoads *loads, const int *devices, int count, int step) {
    const Uplinks *uplinks = &loads->cluster->uplinks;
    for (int i = 0; i < count; i++) {
        if (devices[i] >= loads->cluster->device_count) continue;
        loads->on_host[cluster_host(loads->cluster, devices[i])] += step;
        for (int u = uplinks->first[devices[i]]; u < uplinks->first[devices[i] + 1]; u++)
            loads->members[uplinks->of_device[u]] += step;
    }
}

/* Returns how many members are on the hosts of an uplink. */
static int inside(const UplinkLoads *loads, int uplink) {
    int host = loads->cluster->uplinks.at[uplink].host;
    return host < 0 ? loads->members[uplink] : loads->on_host[host];
}

/* Adds what the root of a broadcast sends, or the root of a reduce receives. */
static void load_rooted(UplinkLoads *loads, ht_verb verb, const int *devices, int count,
                        double bytes) {
    for (int i = 1; i < count; i++)
        if (verb == HT_BROADCAST) uplink_loads_message(loads, devices[0], devices[i], bytes);
        else uplink_loads_message(loads, devices[i], devices[0], bytes);
}

void uplink_loads_collective(UplinkLoads *loads, ht_verb verb, const int *devices, int count,
                             double bytes) {
    const Uplinks *uplinks = &loads->cluster->uplinks;
    if (verb == HT_BROADCAST || verb == HT_REDUCE) {
        load_rooted(loads, verb, devices, count, bytes);
        return;
    }
    double each = (verb == HT_ALL_REDUCE ? 2 : 1) * bytes / count; // from one member to another
    count_members(loads, devices, count, 1);
    for (int i = 0; i < count; i++) {
        if (devices[i] >= loads->cluster->device_count) continue;
        for (int u = uplinks->first[devices[i]]; u < uplinks->first[devices[i] + 1]; u++) {
            int uplink = uplinks->of_device[u];
            double sent = each * (count - inside(loads, uplink));
            add_bytes(loads, 2 * uplink, sent);
            add_bytes(loads, 2 * uplink + uplinks->at[uplink].duplex, sent);
        }
    }
    count_members(loads, devices, count, -1);
}

Link uplinks_shared(const Cluster *cluster, Link link, const int *devices, int count, int rings) {
    if (!uplink_directions(cluster)) return link;
    Arena *scratch = arena_create();
    UplinkLoads loads = uplink_loads(scratch, cluster);
    for (int i = 0; i < count; i++)
        uplink_loads_message(&loads, devices[i], devices[i + rings < count ? i + rings : i % rings],
                             1);
    for (int i = 0; i < loads.passed_count; i++)
        link.bandwidth = fmin(link.bandwidth,
                              uplink_rate(cluster, loads.passed[i]) / loads.bytes[loads.passed[i]]);
    arena_destroy(scratch);
    return link;
}
