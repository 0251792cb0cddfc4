/* Finds sets of devices whose classes and links are equal, so that they are planned once. */
#include "cluster/cluster.h"

#include "support/array.h"

#include <string.h>

/* The description of a set of devices, equal for equivalent sets. */
typedef struct Likeness {
    Arena *arena;
    const Cluster *cluster;
    int *host;  // by host of the cluster: its number within the set, from 1 on; 0: not in the set
    int *place; // by device: its position in the set, from 1 on; 0: not in the set
    Array(int64_t) words;
} Likeness;

static void add_word(Likeness *likeness, int64_t word) {
    array_push(likeness->arena, &likeness->words, word);
}

static void add_number(Likeness *likeness, double number) {
    int64_t word;
    memcpy(&word, &number, sizeof word);
    add_word(likeness, word);
}

/* Returns the number of entry `own`; gives an entry without a number the next one. */
static int numbered(int *numbers, int own, int *count) {
    numbers[own] = numbers[own] ? numbers[own] : ++*count;
    return numbers[own];
}

/* Adds each device's class, host and processor, and how many devices share the last two. */
static void add_devices(Likeness *likeness, const int *devices, int count) {
    const Cluster *cluster = likeness->cluster;
    int hosts = 0, processors = 0,
        *processor = arena_array(likeness->arena, int, cluster->processor_count);
    int *on_host = arena_array(likeness->arena, int, cluster->host_count),
        *sharing = arena_array(likeness->arena, int, cluster->processor_count);
    for (int d = 0; d < cluster->device_count; d++) {
        on_host[cluster->devices[d].host]++;
        sharing[cluster->devices[d].processor]++;
    }
    add_word(likeness, count);
    for (int i = 0; i < count; i++) {
        int host = cluster_host(cluster, devices[i]);
        bool listed = devices[i] < cluster->device_count;
        add_word(likeness, (intptr_t)cluster_class(cluster, devices[i]));
        add_word(likeness, numbered(likeness->host, host, &hosts));
        add_word(likeness, on_host[host]);
        add_word(likeness,
                 listed ? numbered(processor, cluster->devices[devices[i]].processor, &processors)
                        : 0);
        add_word(likeness, listed ? sharing[cluster->devices[devices[i]].processor] : 0);
        if (listed) likeness->place[devices[i]] = i + 1;
    }
}

static bool has_end(const Likeness *likeness, const LinkEnd *end) {
    bool found = end->host >= 0 && likeness->host[end->host];
    for (int i = 0; i < end->device_count && !found; i++) found = likeness->place[end->devices[i]];
    return found;
}

static void add_end(Likeness *likeness, const LinkEnd *end) {
    add_word(likeness, end->host >= 0 ? likeness->host[end->host] : 0);
    for (int i = 0; i < end->device_count; i++)
        if (likeness->place[end->devices[i]]) add_word(likeness, likeness->place[end->devices[i]]);
    add_word(likeness, 0);
}

/* Adds, in order, the entries of `pairs` that join two of the devices: the first match counts. */
static void add_pairs(Likeness *likeness) {
    for (int p = 0; p < likeness->cluster->pair_count; p++) {
        const LinkPair *pair = &likeness->cluster->pairs[p];
        if (!has_end(likeness, &pair->end[0]) || !has_end(likeness, &pair->end[1])) continue;
        add_number(likeness, pair->link.latency);
        add_number(likeness, pair->link.bandwidth);
        add_word(likeness, (intptr_t)pair->link.measured);
        add_end(likeness, &pair->end[0]);
        add_end(likeness, &pair->end[1]);
    }
}

/* Adds each device's uplinks: their rates, and how many devices of the cluster share them. */
static void add_uplinks(Likeness *likeness, const int *devices, int count) {
    const Uplinks *uplinks = &likeness->cluster->uplinks;
    int *number = arena_array(likeness->arena, int, uplinks->count + 1), numbers = 0;
    for (int i = 0; i < count && uplinks->count; i++) {
        if (devices[i] >= likeness->cluster->device_count) continue;
        for (int u = uplinks->first[devices[i]]; u < uplinks->first[devices[i] + 1]; u++) {
            const Uplink *own = &uplinks->at[uplinks->of_device[u]];
            add_word(likeness, numbered(number, uplinks->of_device[u], &numbers));
            add_number(likeness, own->rate[0]);
            add_number(likeness, own->rate[1]);
            add_number(likeness, own->burst);
            add_word(likeness, own->duplex);
            add_word(likeness, own->device_count);
        }
        add_word(likeness, 0);
    }
}

const int *cluster_equivalent_devices(Intern *known, const Cluster *cluster, const int *devices,
                                      int count) {
    Arena *scratch = arena_create();
    Likeness likeness = {.arena = scratch,
                         .cluster = cluster,
                         .host = arena_array(scratch, int, cluster->host_count),
                         .place = arena_array(scratch, int, cluster->device_count)};
    add_devices(&likeness, devices, count);
    add_pairs(&likeness);
    add_uplinks(&likeness, devices, count);
    const int *own = intern(known, devices, sizeof *devices * (size_t)count);
    const int **first = intern_slot(known, likeness.words.at,
                                    sizeof *likeness.words.at * (size_t)likeness.words.count);
    *first = *first ? *first : own;
    own = *first;
    arena_destroy(scratch);
    return own;
}
