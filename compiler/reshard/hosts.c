/* Two tiers: values on their way inside hosts, and across them.
 *
 * A value goes to another host once, in parts to several of the devices that want it there, which hand them on. Where hosts divide a value
 * differently, the borders of all together give the finest slices; each slice crosses in a group of its own.
 */
#include "reshard/hosts.h"

#include <stdlib.h>
#include <string.h>

Hosts *hosts_of(Builder *builder)
{
    const Plan *plan = builder->plan;
    Hosts *hosts = arena_new(builder->arena, Hosts);
    int *host = arena_array(builder->arena, int, plan->device_count), *rank = arena_array(builder->arena, int, plan->device_count),
        most = 0;
    for (int i = 0; i < plan->device_count; i++) {
        host[i] = cluster_host(plan->cluster, plan->devices[i]);
        most = host[i] > most ? host[i] : most;
    }
    int *number = arena_array(builder->arena, int, most + 1), *size = arena_array(builder->arena, int, most + 1);
    *hosts = (Hosts){.builder = builder, .host = host, .rank = rank};
    for (int i = 0; i < plan->device_count; i++) {
        if (!number[host[i]])
            number[host[i]] = ++hosts->count;
        rank[i] = size[host[i]]++;
        host[i] = number[host[i]] - 1;
    }
    return hosts;
}

int host_of(const Hosts *hosts, int device) { return hosts->host[plan_slot(hosts->builder->plan, device)]; }
int rank_of(const Hosts *hosts, int device) { return hosts->rank[plan_slot(hosts->builder->plan, device)]; }

Devices *devices_by_host(Hosts *hosts, const Devices *devices)
{
    Devices *lists = arena_array(hosts->builder->arena, Devices, hosts->count);
    for (int i = 0; i < devices->count; i++)
        array_push(hosts->builder->arena, &lists[host_of(hosts, devices->at[i])], devices->at[i]);
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

/* ---- gifts ---- */

/* A gift with the hosts that it must cross to. */
typedef struct Import {
    Gift gift;
    Divisions divisions;
} Import;

typedef Array(Import) Imports;

static void push_gift(Hosts *hosts, Gifts *gifts, Segment segment, const Devices *holders, const Devices *needers)
{
    if (needers->count && segment.lo < segment.hi)
        array_push(hosts->builder->arena, gifts, (Gift){segment, *holders, *needers});
}

void push_handed(Hosts *hosts, Gifts *gifts, Segment segment, int holder, const Devices *wanted)
{
    Devices from = {0}, to = {0};
    segment.origin = ORIGIN_TO;
    segment.source = 0;
    array_push(hosts->builder->arena, &from, holder);
    for (int i = 0; i < wanted->count; i++)
        if (wanted->at[i] != holder)
            array_push(hosts->builder->arena, &to, wanted->at[i]);
    push_gift(hosts, gifts, segment, &from, &to);
}

Devices rotate_to_rank(Hosts *hosts, const Devices *devices, int rank)
{
    Devices rotated = {0};
    int begin = 0;
    while (begin < devices->count && rank_of(hosts, devices->at[begin]) < rank)
        begin++;
    for (int i = 0; i < devices->count; i++)
        array_push(hosts->builder->arena, &rotated, devices->at[(begin + i) % devices->count]);
    return rotated;
}

/* The work of taking a gift in and handing it on inside a host. */
static Work import_work(Hosts *hosts, const Gift *gift, const Division *division)
{
    return (Work){.devices = division->devices,
                  .first = division->devices.count,
                  .unit = task_element(hosts->builder->plan, gift->segment.task),
                  .grains = gift->segment.hi - gift->segment.lo,
                  .grain = division->devices.count > 1 ? division->devices.count - 1 : 1,
                  .units = division->shares};
}

/* Adds a gift's parts inside the hosts that have the value, and its import into the others. */
static void split_gift(Hosts *hosts, const Gift *gift, Imports *imports, Works *works, Gifts *local)
{
    Arena *arena = hosts->builder->arena;
    Devices *holders = devices_by_host(hosts, &gift->holders), *needers = devices_by_host(hosts, &gift->needers);
    Import import = {.gift = *gift};
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_gift(hosts, local, gift->segment, &holders[h], &needers[h]);
        if (holders[h].count || !needers[h].count)
            continue;
        Division division = {.host = h, .devices = rotate_to_rank(hosts, &needers[h], rank_of(hosts, gift->holders.at[0]))};
        division.shares = arena_array(arena, int64_t, needers[h].count);
        array_push(arena, works, import_work(hosts, gift, &division));
        array_push(arena, &import.divisions, division);
    }
    if (import.divisions.count)
        array_push(arena, imports, import);
}

/* Sends each slice of an import to one device of each host, which hands it on. */
static void cross(Hosts *hosts, Import *import, Gifts *crossing, Gifts *local)
{
    Segment segment = import->gift.segment;
    for (int d = 0; d < import->divisions.count; d++) {
        Division *division = &import->divisions.at[d];
        Segment part = segment;
        for (int i = 0; i < division->devices.count; i++, part.lo = part.hi) {
            division->shares[i] /= division->devices.count > 1 ? division->devices.count - 1 : 1;
            part.hi = part.lo + division->shares[i];
            push_handed(hosts, local, part, division->devices.at[i], &division->devices);
        }
    }
    begin_slices(&import->divisions);
    for (int64_t end = segment.hi; segment.lo < end; segment.lo = segment.hi) {
        Devices needers = {0};
        segment.hi = next_slice(&import->divisions, segment.lo, end);
        for (int d = 0; d < import->divisions.count; d++)
            array_push(hosts->builder->arena, &needers, slice_device(&import->divisions.at[d]));
        push_gift(hosts, crossing, segment, &import->gift.holders, &needers);
    }
}

void tier_gifts(Hosts *hosts, const Gifts *gifts, Gifts *crossing, Gifts *local)
{
    Builder *builder = hosts->builder;
    Imports imports = {0};
    Works works = {0};
    int64_t total = 0;
    for (int g = 0; g < gifts->count; g++)
        split_gift(hosts, &gifts->at[g], &imports, &works, local);
    for (int w = 0; w < works.count; w++)
        total += work_load(&works.at[w]);
    memset(builder->sent, 0, sizeof *builder->sent * (size_t)builder->plan->device_count);
    balance_works(builder, &works, load_cap(builder->plan, total), MANY_SWEEPS, builder->sent);
    for (int i = 0; i < imports.count; i++)
        cross(hosts, &imports.at[i], crossing, local);
}

/* ---- in one tier ---- */

/* Adds a gift's parts inside the hosts that have the value, and what goes from all holders to the other hosts. */
static void split_near(Hosts *hosts, const Gift *gift, Gifts *near)
{
    Devices *holders = devices_by_host(hosts, &gift->holders), *needers = devices_by_host(hosts, &gift->needers), far = {0};
    for (int h = 0; h < hosts->count; h++) {
        if (holders[h].count)
            push_gift(hosts, near, gift->segment, &holders[h], &needers[h]);
        for (int i = 0; i < needers[h].count && !holders[h].count; i++)
            array_push(hosts->builder->arena, &far, needers[h].at[i]);
    }
    push_gift(hosts, near, gift->segment, &gift->holders, &far);
}

Gifts near_gifts(Builder *builder, const Gifts *gifts)
{
    Gifts near = {0};
    Hosts *hosts = hosts_of(builder);
    if (hosts->count == 1)
        return *gifts;
    for (int g = 0; g < gifts->count; g++)
        split_near(hosts, &gifts->at[g], &near);
    return near;
}
