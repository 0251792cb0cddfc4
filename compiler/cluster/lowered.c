/* Makes a cluster slower between some hosts. */
#include "cluster/cluster.h"

#include "support/arena.h"

#include <math.h>
#include <string.h>

/* Returns the bandwidth of a host's card, the largest of its lowered links; 0: some link is not. */
static double card_of(const Cluster *cluster, const LoweredLink *links, int count, int host) {
    double most = 0;
    int met = 0;
    for (int i = 0; i < count; i++)
        if (links[i].host[0] == host || links[i].host[1] == host) {
            most = fmax(most, links[i].bandwidth);
            met++;
        }
    return met == cluster->host_count - 1 ? most : 0;
}

static int devices_on(const Cluster *cluster, int host) {
    int count = 0;
    for (int d = 0; d < cluster->device_count; d++) count += cluster_host(cluster, d) == host;
    return count;
}

/* Adds an uplink for each host with a card; devices that have most uplinks already get none. */
static void add_cards(Arena *arena, Cluster *cluster, const double *card) {
    const Uplinks old = cluster->uplinks;
    int *number = arena_array(arena, int, cluster->host_count), count = old.count, total = 0,
        *first = arena_array(arena, int, cluster->device_count + 1),
        *list = arena_array(
            arena, int, (old.count ? old.first[cluster->device_count] : 0) + cluster->device_count);
    Uplink *at = arena_array(arena, Uplink, old.count + cluster->host_count);
    if (old.count) memcpy(at, old.at, sizeof *at * (size_t)old.count);
    for (int h = 0; h < cluster->host_count; h++)
        if (card[h] > 0) {
            number[h] = count;
            at[count++] = (Uplink){.rate = {card[h], card[h]},
                                   .duplex = true,
                                   .device_count = devices_on(cluster, h),
                                   .host = -1};
        }
    for (int d = 0; d < cluster->device_count; d++) {
        int begin = total, host = cluster_host(cluster, d);
        first[d] = total;
        for (int i = old.count ? old.first[d] : 0; old.count && i < old.first[d + 1]; i++)
            list[total++] = old.of_device[i];
        if (card[host] > 0 && total - begin < UPLINKS_OF_DEVICE) list[total++] = number[host];
    }
    first[cluster->device_count] = total;
    cluster->uplinks = (Uplinks){.count = count, .at = at, .first = first, .of_device = list};
}

/* Puts the links of two hosts whose cards are not lowered in front of the file's pairs. */
static void add_pairs(Arena *arena, Cluster *cluster, const LoweredLink *links, int count,
                      const double *card) {
    LinkPair *pairs = arena_array(arena, LinkPair, cluster->pair_count + count);
    int added = 0;
    for (int i = 0; i < count; i++) {
        int a = links[i].host[0], b = links[i].host[1], on_a = devices_on(cluster, a),
            on_b = devices_on(cluster, b);
        if (card[a] > 0 || card[b] > 0) continue;
        pairs[added++] =
            (LinkPair){.end = {{.host = a}, {.host = b}},
                       .link = {.latency = cluster->remote.latency,
                                .bandwidth = links[i].bandwidth / (on_a < on_b ? on_a : on_b)}};
    }
    if (cluster->pair_count)
        memcpy(pairs + added, cluster->pairs, sizeof *pairs * (size_t)cluster->pair_count);
    cluster->pairs = pairs;
    cluster->pair_count += added;
}

const Cluster *cluster_lowered(Arena *arena, const Cluster *cluster, const LoweredLink *links,
                               int count) {
    Cluster *lowered = arena_copy(arena, cluster, sizeof *cluster);
    double *card = arena_array(arena, double, cluster->host_count);
    for (int h = 0; h < cluster->host_count; h++) card[h] = card_of(cluster, links, count, h);
    add_cards(arena, lowered, card);
    add_pairs(arena, lowered, links, count, card);
    return lowered;
}
