/* Groups devices by host for hierarchical conversions. */
#include "reshard/hierarchical/hierarchical.h"

#include <string.h>

Hosts *hosts_of(PlanBuilder *planner) {
    const Plan *plan = planner->plan;
    Hosts *hosts = arena_new(planner->arena, Hosts);
    int *host = arena_array(planner->arena, int, plan->device_count),
        *rank = arena_array(planner->arena, int, plan->device_count), most = 0;
    for (int i = 0; i < plan->device_count; i++) {
        host[i] = cluster_host(plan->cluster, plan->devices[i]);
        most = host[i] > most ? host[i] : most;
    }
    int *number = arena_array(planner->arena, int, most + 1),
        *size = arena_array(planner->arena, int, most + 1);
    *hosts = (Hosts){.planner = planner, .host = host, .rank = rank};
    for (int i = 0; i < plan->device_count; i++) {
        if (!number[host[i]]) number[host[i]] = ++hosts->count;
        rank[i] = size[host[i]]++;
        host[i] = number[host[i]] - 1;
    }
    return hosts;
}

int host_of(const Hosts *hosts, int device) {
    return hosts->host[plan_slot(hosts->planner->plan, device)];
}
int rank_of(const Hosts *hosts, int device) {
    return hosts->rank[plan_slot(hosts->planner->plan, device)];
}

void devices_by_host(Hosts *hosts, const Devices *devices, Devices *lists) {
    int *next = arena_array(hosts->planner->arena, int, devices->count);
    memset(lists, 0, sizeof *lists * (size_t)hosts->count);
    for (int i = 0; i < devices->count; i++) lists[host_of(hosts, devices->at[i])].capacity++;
    for (int i = 0; i < devices->count; i++) {
        Devices *own = &lists[host_of(hosts, devices->at[i])];
        if (!own->at) {
            own->at = next;
            next += own->capacity;
        }
        own->at[own->count++] = devices->at[i];
    }
}

Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank) {
    Devices rotated = {0};
    int begin = 0;
    while (begin < devices->count && rank_of(hosts, devices->at[begin]) < rank) begin++;
    for (int i = 0; i < devices->count; i++)
        array_push(hosts->planner->arena, &rotated, devices->at[(begin + i) % devices->count]);
    return rotated;
}

int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi) {
    for (int d = 0; d < divisions->count; d++) {
        Division *division = &divisions->at[d];
        while (!division->left && division->at + 1 < division->devices.count)
            division->left = division->shares[++division->at];
        hi = division->left && lo + division->left < hi ? lo + division->left : hi;
    }
    for (int d = 0; d < divisions->count; d++) divisions->at[d].left -= hi - lo;
    return hi;
}

void begin_slices(Divisions *divisions) {
    for (int d = 0; d < divisions->count; d++) {
        divisions->at[d].at = 0;
        divisions->at[d].left = divisions->at[d].shares[0];
    }
}

int slice_device(const Division *division) { return division->devices.at[division->at]; }
