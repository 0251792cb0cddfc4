/* Two tiers: values on their way inside hosts, and across them.
 *
 * A value goes to another host once, in parts to several of the devices that want it there, which hand them on. Where hosts divide a value
 * differently, the borders of all together give the finest slices; each slice crosses in a group of its own.
 */
#include "reshard/tiers/tiers.h"

#include <stdlib.h>
#include <string.h>

Hosts *hosts_of(Planner *planner)
{
    const Plan *plan = planner->plan;
    Hosts *hosts = arena_new(planner->arena, Hosts);
    int *host = arena_array(planner->arena, int, plan->device_count), *rank = arena_array(planner->arena, int, plan->device_count),
        most = 0;
    for (int i = 0; i < plan->device_count; i++) {
        host[i] = cluster_host(plan->cluster, plan->devices[i]);
        most = host[i] > most ? host[i] : most;
    }
    int *number = arena_array(planner->arena, int, most + 1), *size = arena_array(planner->arena, int, most + 1);
    *hosts = (Hosts){.planner = planner, .host = host, .rank = rank};
    for (int i = 0; i < plan->device_count; i++) {
        if (!number[host[i]])
            number[host[i]] = ++hosts->count;
        rank[i] = size[host[i]]++;
        host[i] = number[host[i]] - 1;
    }
    return hosts;
}

int host_of(const Hosts *hosts, int device) { return hosts->host[plan_slot(hosts->planner->plan, device)]; }
int rank_of(const Hosts *hosts, int device) { return hosts->rank[plan_slot(hosts->planner->plan, device)]; }

Devices *devices_by_host(Hosts *hosts, const Devices *devices)
{
    Devices *lists = arena_array(hosts->planner->arena, Devices, hosts->count);
    for (int i = 0; i < devices->count; i++)
        array_push(hosts->planner->arena, &lists[host_of(hosts, devices->at[i])], devices->at[i]);
    return lists;
}

/* ---- slices ---- */

int64_t next_slice(Divisions *divisions, int64_t lo, int64_t hi)
{
    for (int d = 0; d < divisions->count; d++) {
        Division *division = &divisions->at[d];
        while (!division->left && division->at + 1 < division->devices.count)
            division->left = division->shares[++division->at];
        hi = division->left && lo + division->left < hi ? lo + division->left : hi;
    }
    for (int d = 0; d < divisions->count; d++)
        divisions->at[d].left -= hi - lo;
    return hi;
}

void begin_slices(Divisions *divisions)
{
    for (int d = 0; d < divisions->count; d++) {
        divisions->at[d].at = 0;
        divisions->at[d].left = divisions->at[d].shares[0];
    }
}

int slice_device(const Division *division) { return division->devices.at[division->at]; }

/* ---- transfers ---- */

/* A transfer with the hosts that it must cross to. */
typedef struct Import {
    Transfer transfer;
    Divisions divisions;
} Import;

typedef Array(Import) Imports;

static void push_transfer(Hosts *hosts, Transfers *transfers, Segment segment, const Devices *holders, const Devices *receivers)
{
    if (receivers->count && segment.lo < segment.hi)
        array_push(hosts->planner->arena, transfers, (Transfer){segment, *holders, *receivers});
}

void transfer_inside(Hosts *hosts, Transfers *transfers, Segment segment, int holder, const Devices *targets)
{
    Devices from = {0}, to = {0};
    segment.origin = ORIGIN_TO;
    segment.source = 0;
    array_push(hosts->planner->arena, &from, holder);
    for (int i = 0; i < targets->count; i++)
        if (targets->at[i] != holder)
            array_push(hosts->planner->arena, &to, targets->at[i]);
    push_transfer(hosts, transfers, segment, &from, &to);
}

Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank)
{
    Devices rotated = {0};
    int begin = 0;
    while (begin < devices->count && rank_of(hosts, devices->at[begin]) < rank)
        begin++;
    for (int i = 0; i < devices->count; i++)
        array_push(hosts->planner->arena, &rotated, devices->at[(begin + i) % devices->count]);
    return rotated;
}

/* The job of taking a transfer in and handing it on inside a host. */
static Job import_job(Hosts *hosts, const Transfer *transfer, const Division *division)
{
    return (Job){.devices = division->devices,
                  .first = division->devices.count,
                  .unit = task_element(hosts->planner->plan, transfer->segment.task),
                  .grains = transfer->segment.hi - transfer->segment.lo,
                  .grain = division->devices.count > 1 ? division->devices.count - 1 : 1,
                  .units = division->shares};
}

/* Adds a transfer's parts inside the hosts that have the value, and its import into the others. */
static void split_transfer(Hosts *hosts, const Transfer *transfer, Imports *imports, Jobs *jobs, Transfers *local)
{
    Arena *arena = hosts->planner->arena;
    Devices *holders = devices_by_host(hosts, &transfer->holders), *receivers = devices_by_host(hosts, &transfer->receivers);
    Import import = {.transfer = *transfer};
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_transfer(hosts, local, transfer->segment, &holders[h], &receivers[h]);
        if (holders[h].count || !receivers[h].count)
            continue;
        Division division = {.host = h, .devices = rotate_to_rank(hosts, &receivers[h], rank_of(hosts, transfer->holders.at[0]))};
        division.shares = arena_array(arena, int64_t, receivers[h].count);
        array_push(arena, jobs, import_job(hosts, transfer, &division));
        array_push(arena, &import.divisions, division);
    }
    if (import.divisions.count)
        array_push(arena, imports, import);
}

/* Sends each slice of an import to one device of each host, which hands it on. */
static void cross(Hosts *hosts, Import *import, Transfers *crossing, Transfers *local)
{
    Segment segment = import->transfer.segment;
    for (int d = 0; d < import->divisions.count; d++) {
        Division *division = &import->divisions.at[d];
        Segment part = segment;
        for (int i = 0; i < division->devices.count; i++, part.lo = part.hi) {
            division->shares[i] /= division->devices.count > 1 ? division->devices.count - 1 : 1;
            part.hi = part.lo + division->shares[i];
            transfer_inside(hosts, local, part, division->devices.at[i], &division->devices);
        }
    }
    begin_slices(&import->divisions);
    for (int64_t end = segment.hi; segment.lo < end; segment.lo = segment.hi) {
        Devices receivers = {0};
        segment.hi = next_slice(&import->divisions, segment.lo, end);
        for (int d = 0; d < import->divisions.count; d++)
            array_push(hosts->planner->arena, &receivers, slice_device(&import->divisions.at[d]));
        push_transfer(hosts, crossing, segment, &import->transfer.holders, &receivers);
    }
}

void tier_transfers(Hosts *hosts, const Transfers *transfers, Transfers *crossing, Transfers *local)
{
    Planner *planner = hosts->planner;
    Imports imports = {0};
    Jobs jobs = {0};
    int64_t total = 0;
    for (int g = 0; g < transfers->count; g++)
        split_transfer(hosts, &transfers->at[g], &imports, &jobs, local);
    for (int w = 0; w < jobs.count; w++)
        total += job_load(&jobs.at[w]);
    memset(planner->sent, 0, sizeof *planner->sent * (size_t)planner->plan->device_count);
    balance_jobs(planner, &jobs, load_cap(planner->plan, total), MANY_SWEEPS, planner->sent);
    for (int i = 0; i < imports.count; i++)
        cross(hosts, &imports.at[i], crossing, local);
}

/* ---- in one tier ---- */

/* Adds a transfer's parts inside the hosts that have the value, and what goes from all holders to the other hosts. */
static void split_near(Hosts *hosts, const Transfer *transfer, Transfers *near)
{
    Devices *holders = devices_by_host(hosts, &transfer->holders), *receivers = devices_by_host(hosts, &transfer->receivers), far = {0};
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_transfer(hosts, near, transfer->segment, &holders[h], &receivers[h]);
        for (int i = 0; i < receivers[h].count && !holders[h].count; i++)
            array_push(hosts->planner->arena, &far, receivers[h].at[i]);
    }
    push_transfer(hosts, near, transfer->segment, &transfer->holders, &far);
}

Transfers near_transfers(Planner *planner, const Transfers *transfers)
{
    Transfers near = {0};
    Hosts *hosts = hosts_of(planner);
    if (hosts->count == 1)
        return *transfers;
    for (int g = 0; g < transfers->count; g++)
        split_near(hosts, &transfers->at[g], &near);
    return near;
}
