/* Groups devices by class and host, with the memory that each may use (--memory). */
#include "planner/search/devices.h"

/* Returns the devices of a class, sorted by host, then by number. */
static const int *sorted(Arena *arena, const Cluster *cluster, const DeviceClass *class,
                         int *count) {
    Array(int) list = {0};
    for (int host = 0; host < cluster->host_count; host++)
        for (int d = 0; d < cluster->device_count; d++)
            if (cluster->devices[d].class == class && cluster->devices[d].host == host)
                array_push(arena, &list, d);
    *count = list.count;
    return list.at;
}

static int most_on_a_host(const Cluster *cluster, const int *devices, int count) {
    int most = 0;
    for (int i = 0, run = 0; i < count; i++) {
        run = i && cluster->devices[devices[i]].host == cluster->devices[devices[i - 1]].host
                  ? run + 1
                  : 1;
        most = run > most ? run : most;
    }
    return most;
}

static int64_t bound(const DeviceClass *class, int64_t memory) {
    int64_t own = class ? class->memory : 0;
    return !own || (memory && memory < own) ? memory : own;
}

static DeviceGroup group_of(Arena *arena, const Cluster *cluster, const DeviceClass *class,
                            int64_t memory) {
    DeviceGroup group = {.class = class, .memory = bound(class, memory)};
    group.devices = sorted(arena, cluster, class, &group.count);
    group.host_most = most_on_a_host(cluster, group.devices, group.count);
    return group;
}

/* Returns a copy of the cluster whose classes have no memory limit. */
static const Cluster *unbounded(Arena *arena, const Cluster *cluster, const DeviceGroup *groups,
                                int count) {
    Cluster *copy = arena_copy(arena, cluster, sizeof *cluster);
    ClusterDevice *devices =
        arena_copy(arena, cluster->devices, sizeof *devices * (size_t)cluster->device_count);
    for (int g = 0; g < count; g++) {
        DeviceClass *class =
            groups[g].class ? arena_copy(arena, groups[g].class, sizeof *class) : NULL;
        if (class) class->memory = 0;
        for (int i = 0; i < groups[g].count; i++) devices[groups[g].devices[i]].class = class;
    }
    copy->devices = devices;
    return copy;
}

/* Returns the index of the group whose devices take longest for a large f32 matrix product; groups
 * without rates of products count by their rate of other operations. */
static int slowest_of(const DeviceGroup *groups, int count) {
    int slowest = 0;
    double least = 0;
    for (int g = 0; g < count; g++) {
        const Curve *products = &groups[g].class->products[HT_F32];
        double rate = products->count ? curve_at(products, 1e12) : groups[g].class->arithmetic;
        if (g && rate >= least) continue;
        least = rate;
        slowest = g;
    }
    return slowest;
}

/* Returns the group of all devices, sorted by host, with the slowest class and the least memory. */
static DeviceGroup pool_of(Arena *arena, const Cluster *cluster, const DeviceGroup *groups,
                           int count) {
    DeviceGroup pool = groups[slowest_of(groups, count)];
    Array(int) list = {0};
    for (int host = 0; host < cluster->host_count; host++)
        for (int d = 0; d < cluster->device_count; d++)
            if (cluster->devices[d].host == host) array_push(arena, &list, d);
    for (int g = 0; g < count; g++)
        if (groups[g].memory && (!pool.memory || groups[g].memory < pool.memory))
            pool.memory = groups[g].memory;
    pool.count = list.count;
    pool.devices = list.at;
    pool.host_most = most_on_a_host(cluster, list.at, list.count);
    return pool;
}

Fleet devices_of(Arena *arena, const Cluster *cluster, int64_t memory) {
    Array(DeviceGroup) groups = {0};
    for (int d = 0; d < cluster->device_count; d++) {
        bool known = false;
        for (int g = 0; g < groups.count; g++)
            known |= groups.at[g].class == cluster->devices[d].class;
        if (!known)
            array_push(arena, &groups, group_of(arena, cluster, cluster->devices[d].class, memory));
    }
    int count = groups.count;
    const Cluster *unbound = unbounded(arena, cluster, groups.at, count);
    if (count > 1) array_push(arena, &groups, pool_of(arena, cluster, groups.at, count));
    return (Fleet){
        cluster, unbound, count, cluster->device_count, groups.at, slowest_of(groups.at, count)};
}

int devices_group(const Fleet *devices, int device) {
    int group = 0;
    while (devices->groups[group].class != devices->cluster->devices[device].class) group++;
    return group;
}

int64_t devices_memory(const Fleet *devices, int device) {
    return devices->groups[devices_group(devices, device)].memory;
}

Link devices_link(const Fleet *devices, const int *list, int count) {
    Link slowest = devices->cluster->local;
    double worst = -1;
    for (int i = 0; i < count; i++) {
        Link link = cluster_link(devices->cluster, list[i], list[(i + 1) % count]);
        double time = list[i] == list[(i + 1) % count] || link.bandwidth <= 0
                          ? -1
                          : link_seconds(&link, 1 << 20);
        if (time > worst) {
            worst = time;
            slowest = link;
        }
    }
    return slowest;
}
