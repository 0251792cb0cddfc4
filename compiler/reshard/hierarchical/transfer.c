/* Hierarchical transfers: a value is sent once to each host, and passed on inside the host. */
#include "reshard/hierarchical/hierarchical.h"

#include <string.h>

/* A transfer, and the divisions of its value on the hosts that must import the value. */
typedef struct Import {
    Transfer transfer;
    Divisions divisions;
} Import;

typedef Array(Import) Imports;

void push_inside(Hosts *hosts, Transfers *transfers, Segment segment, int holder,
                 const Devices *targets) {
    segment.origin = ORIGIN_TO;
    segment.source = 0;
    push_result(hosts->planner, transfers, segment, holder, targets);
}

/* Returns the job of receiving a transfer and passing it on inside a host. */
static Job import_job(Hosts *hosts, const Transfer *transfer, const Division *division) {
    return (Job){.devices = division->devices,
                 .first = division->devices.count,
                 .unit = task_element(hosts->planner->plan, transfer->segment.task),
                 .grains = transfer->segment.hi - transfer->segment.lo,
                 .grain = division->devices.count > 1 ? division->devices.count - 1 : 1,
                 .units = division->shares};
}

/* The holders and receivers of a transfer, by host. */
typedef struct Ends {
    Devices *holders, *receivers;
} Ends;

static Ends ends_create(Hosts *hosts) {
    Arena *arena = hosts->planner->arena;
    return (Ends){arena_array(arena, Devices, hosts->count),
                  arena_array(arena, Devices, hosts->count)};
}

static void find_ends(Hosts *hosts, const Transfer *transfer, const Ends *ends) {
    devices_by_host(hosts, &transfer->holders, ends->holders);
    devices_by_host(hosts, &transfer->receivers, ends->receivers);
}

/* Splits a transfer into transfers inside holders' hosts, and an import for all other hosts. */
static void split_transfer(Hosts *hosts, const Transfer *transfer, const Ends *ends,
                           Imports *imports, Transfers *local) {
    Arena *arena = hosts->planner->arena;
    const Devices *holders = ends->holders, *receivers = ends->receivers;
    Import import = {.transfer = *transfer};
    find_ends(hosts, transfer, ends);
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_transfer(hosts->planner, local, transfer->segment, holders[h], receivers[h]);
        if (holders[h].count || !receivers[h].count) continue;
        Division division = {.host = h,
                             .devices = rotate_to_rank(hosts, &receivers[h],
                                                       rank_of(hosts, transfer->holders.at[0]))};
        division.shares = arena_array(arena, int64_t, receivers[h].count);
        array_push(arena, &import.divisions, division);
    }
    if (import.divisions.count) array_push(arena, imports, import);
}

/* Adds, for each slice of an import, the transfer to one device of each host. Adds also the
 * transfers by which that device passes the slice on. */
static void cross(Hosts *hosts, Import *import, Transfers *crossing, Transfers *local) {
    Segment segment = import->transfer.segment;
    for (int d = 0; d < import->divisions.count; d++) {
        Division *division = &import->divisions.at[d];
        Segment part = segment;
        for (int i = 0; i < division->devices.count; i++, part.lo = part.hi) {
            division->shares[i] /= division->devices.count > 1 ? division->devices.count - 1 : 1;
            part.hi = part.lo + division->shares[i];
            push_inside(hosts, local, part, division->devices.at[i], &division->devices);
        }
    }
    begin_slices(&import->divisions);
    for (int64_t end = segment.hi; segment.lo < end; segment.lo = segment.hi) {
        Devices receivers = {0};
        segment.hi = next_slice(&import->divisions, segment.lo, end);
        for (int d = 0; d < import->divisions.count; d++)
            array_push(hosts->planner->arena, &receivers, slice_device(&import->divisions.at[d]));
        push_transfer(hosts->planner, crossing, segment, import->transfer.holders, receivers);
    }
}

void tier_transfers(Hosts *hosts, const Transfers *transfers, Transfers *crossing,
                    Transfers *local) {
    PlanBuilder *planner = hosts->planner;
    Imports imports = {0};
    Jobs jobs = {0};
    Ends ends = ends_create(hosts);
    int64_t total = 0;
    for (int g = 0; g < transfers->count; g++)
        split_transfer(hosts, &transfers->at[g], &ends, &imports, local);
    for (int i = 0; i < imports.count; i++)
        for (int d = 0; d < imports.at[i].divisions.count; d++)
            array_push(planner->arena, &jobs,
                       import_job(hosts, &imports.at[i].transfer, &imports.at[i].divisions.at[d]));
    for (int w = 0; w < jobs.count; w++) total += job_load(&jobs.at[w]);
    memset(planner->plan->sent, 0,
           sizeof *planner->plan->sent * (size_t)planner->plan->device_count);
    balance_jobs(planner, &jobs, load_cap(planner->plan, total), MANY_SWEEPS, planner->plan->sent);
    for (int i = 0; i < imports.count; i++) cross(hosts, &imports.at[i], crossing, local);
}

/* Splits a transfer into transfers inside the holders' hosts and one to the remaining receivers. */
static void split_near(Hosts *hosts, const Transfer *transfer, const Ends *ends, Transfers *near) {
    const Devices *holders = ends->holders, *receivers = ends->receivers;
    Devices far = {0};
    find_ends(hosts, transfer, ends);
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_transfer(hosts->planner, near, transfer->segment, holders[h], receivers[h]);
        for (int i = 0; i < receivers[h].count && !holders[h].count; i++)
            array_push(hosts->planner->arena, &far, receivers[h].at[i]);
    }
    push_transfer(hosts->planner, near, transfer->segment, transfer->holders, far);
}

Transfers near_transfers(PlanBuilder *planner, const Transfers *transfers) {
    Transfers near = {0};
    Hosts *hosts = hosts_of(planner);
    if (hosts->count == 1) return *transfers;
    Ends ends = ends_create(hosts);
    for (int g = 0; g < transfers->count; g++) split_near(hosts, &transfers->at[g], &ends, &near);
    return near;
}
