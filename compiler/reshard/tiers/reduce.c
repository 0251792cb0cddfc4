/* Two tiers: reductions inside hosts, and across them.
 *
 * Each host reduces the contributions that its devices hold, in slices at several of these. Then each slice is reduced across hosts by the
 * devices that have it, one a host, for one device of each host where it is wanted; these hand it on inside their hosts. A host that holds
 * all contributions needs no others.
 */
#include "reshard/tiers/division.h"
#include "reshard/tiers/tiers.h"

/* A task as the hosts see it. */
typedef struct Tier {
    Hosts *hosts;
    Arena *arena;
    Task task;
    Index *wants;     // the devices that want the value
    Devices *targets; // the same by host
    int *host;        // by contribution: the host that brings it in, or -1
    int *offers;      // by host: contributions that nobody brings in yet and of which it has a holder
    bool *holds;      // by host: one of these holders wants the value
    Tasks *local, *crossing;
    Transfers *inside;
} Tier;

/* The holders of a contribution on a host. */
static Devices holders_on(const Tier *tier, int source, int host)
{
    Devices found = {0};
    const Devices *holders = &tier->task.sources[source];
    for (int i = 0; i < holders->count; i++)
        if (host_of(tier->hosts, holders->at[i]) == host)
            array_push(tier->arena, &found, holders->at[i]);
    return found;
}

/* ---- which host brings in what ---- */

static void count_offers(Tier *tier)
{
    int *seen = arena_array(tier->arena, int, tier->hosts->count);
    for (int h = 0; h < tier->hosts->count; h++) {
        tier->offers[h] = 0;
        tier->holds[h] = false;
    }
    for (int p = 0; p < tier->task.source_count; p++)
        for (int i = 0; i < tier->task.sources[p].count && tier->host[p] < 0; i++) {
            int device = tier->task.sources[p].at[i], h = host_of(tier->hosts, device);
            tier->offers[h] += seen[h] != p + 1;
            tier->holds[h] = tier->holds[h] || index_find(tier->wants, device) >= 0;
            seen[h] = p + 1;
        }
}

/* Forgets the offers of hosts where no holder wants the value, if there are others: only there can it be complete without another transfer.
 */
static void prefer_wanting(Tier *tier)
{
    bool any = false;
    for (int h = 0; h < tier->hosts->count; h++)
        any = any || tier->holds[h];
    for (int h = 0; h < tier->hosts->count && any; h++)
        tier->offers[h] = tier->holds[h] ? tier->offers[h] : 0;
}

static int best_host(const Tier *tier)
{
    int best = 0;
    for (int h = 1; h < tier->hosts->count; h++)
        best = tier->offers[h] > tier->offers[best] ? h : best;
    return best;
}

/* Assigns each contribution to one of the hosts that have it: the best offers first. The result is the number of hosts. */
static int assign_hosts(Tier *tier)
{
    int left = tier->task.source_count, count = 0;
    for (; left; count++) {
        int h = best_host(tier);
        for (int p = 0; p < tier->task.source_count; p++)
            if (tier->host[p] < 0 && holders_on(tier, p, h).count) {
                tier->host[p] = h;
                left--;
            }
        count_offers(tier);
    }
    return count;
}

/* ---- one host has all contributions ---- */

static int add_task(Tier *tier, Task task, Tasks *list)
{
    Plan *plan = tier->hosts->planner->plan;
    array_push(tier->arena, &plan->tasks, task);
    array_push(tier->arena, list, plan->tasks.count - 1);
    return plan->tasks.count - 1;
}

/* Each host that has all contributions reduces an equal part. */
static void reduce_on_hosts(Tier *tier, int count)
{
    int64_t volume = tier->task.volume;
    for (int h = 0, part = 0; h < tier->hosts->count; h++) {
        if (tier->offers[h] < tier->task.source_count)
            continue;
        Task task = tier->task;
        task.lo += volume * part / count;
        task.volume = volume * (part + 1) / count - volume * part / count;
        task.sources = arena_array(tier->arena, Devices, task.source_count);
        for (int p = 0; p < task.source_count; p++)
            task.sources[p] = holders_on(tier, p, h);
        part++;
        if (task.volume)
            add_task(tier, task, tier->local);
    }
}

/* ---- several hosts have contributions ---- */

/* By host, the holders there of the contributions that it brings in. */
static Devices *bringing_devices(const Tier *tier)
{
    Devices *bringing = arena_array(tier->arena, Devices, tier->hosts->count);
    for (int p = 0; p < tier->task.source_count; p++) {
        Devices holders = holders_on(tier, p, tier->host[p]);
        for (int i = 0; i < holders.count; i++)
            array_push(tier->arena, &bringing[tier->host[p]], holders.at[i]);
    }
    return bringing;
}

/* The devices among which a host divides the value that it wants: those that bring in contributions, or else all that want it. */
static Division wanting_division(const Tier *tier, int host, const Devices *bringing)
{
    Division division = {.host = host};
    for (int i = 0; i < bringing->count; i++)
        if (index_find(tier->wants, bringing->at[i]) >= 0)
            array_push(tier->arena, &division.devices, bringing->at[i]);
    if (!division.devices.count)
        division.devices = tier->targets[host];
    int count = division.devices.count;
    division.shares = arena_array(tier->arena, int64_t, count);
    for (int i = 0; i < count; i++)
        division.shares[i] = tier->task.volume * (i + 1) / count - tier->task.volume * i / count;
    return division;
}

/* The device at which a host reduces a slice: the one that wants it there, or the one of the same rank. */
static int reducing_device(const Tier *tier, const Divisions *divisions, int host, const Devices *bringing)
{
    int wanting = slice_device(&divisions->at[0]);
    for (int d = 0; d < divisions->count; d++)
        if (divisions->at[d].host == host)
            wanting = slice_device(&divisions->at[d]);
    for (int i = 0; i < bringing->count; i++)
        if (bringing->at[i] == wanting)
            return wanting;
    return rotate_to_rank(tier->hosts, bringing, rank_of(tier->hosts, wanting)).at[0];
}

/* What a host makes of a slice for the task `whole`. */
static void add_local(Tier *tier, int whole, int host, int device)
{
    Task task = tier->hosts->planner->plan->tasks.at[whole];
    task = (Task){.bucket = task.bucket, .bundle = task.bundle, .lo = task.lo, .volume = task.volume, .local = true, .whole = whole};
    task.sources = arena_array(tier->arena, Devices, tier->task.source_count);
    for (int p = 0; p < tier->task.source_count; p++)
        if (tier->host[p] == host)
            task.sources[task.source_count++] = holders_on(tier, p, host);
    array_push(tier->arena, &task.targets, device);
    add_task(tier, task, tier->local);
}

/* The reduction of a slice across hosts, and inside those. Where each host has one contribution, there is nothing to reduce inside. */
static void add_crossing(Tier *tier, const Divisions *divisions, const Devices *bringing, int hosts, Task slice)
{
    bool single = hosts == tier->task.source_count;
    Devices devices = {0};
    slice.origin = single ? ORIGIN_FROM : ORIGIN_LOCAL;
    slice.source_count = 0;
    slice.sources = arena_array(tier->arena, Devices, hosts);
    slice.targets = (Devices){0};
    for (int d = 0; d < divisions->count; d++)
        array_push(tier->arena, &slice.targets, slice_device(&divisions->at[d]));
    for (int h = 0; h < tier->hosts->count; h++) {
        if (!bringing[h].count)
            continue;
        array_push(tier->arena, &devices, reducing_device(tier, divisions, h, &bringing[h]));
        array_push(tier->arena, &slice.sources[slice.source_count], devices.at[devices.count - 1]);
        slice.source_count++;
    }
    int whole = add_task(tier, slice, tier->crossing);
    for (int i = 0; i < devices.count && !single; i++)
        add_local(tier, whole, host_of(tier->hosts, devices.at[i]), devices.at[i]);
}

static void reduce_across(Tier *tier, int hosts)
{
    Divisions divisions = {0};
    const Devices *bringing = bringing_devices(tier);
    for (int h = 0; h < tier->hosts->count; h++)
        if (tier->targets[h].count)
            array_push(tier->arena, &divisions, wanting_division(tier, h, &bringing[h]));
    begin_slices(&divisions);
    Task slice = tier->task;
    for (int64_t end = slice.lo + slice.volume; slice.lo < end; slice.lo += slice.volume) {
        slice.volume = next_slice(&divisions, slice.lo, end) - slice.lo;
        add_crossing(tier, &divisions, bringing, hosts, slice);
        for (int d = 0; d < divisions.count; d++) {
            Segment segment = {.task = tier->crossing->at[tier->crossing->count - 1], .lo = slice.lo, .hi = slice.lo + slice.volume};
            push_inside(tier->hosts, tier->inside, segment, slice_device(&divisions.at[d]), &tier->targets[divisions.at[d].host]);
        }
    }
}

/* ---- all together ---- */

static void tier_reduction(Tier *tier)
{
    int whole = 0;
    index_devices(tier->wants, &tier->task.targets);
    tier->targets = devices_by_host(tier->hosts, &tier->task.targets);
    tier->host = arena_array(tier->arena, int, tier->task.source_count);
    for (int p = 0; p < tier->task.source_count; p++)
        tier->host[p] = -1;
    count_offers(tier);
    prefer_wanting(tier);
    for (int h = 0; h < tier->hosts->count; h++)
        whole += tier->offers[h] == tier->task.source_count;
    if (whole)
        reduce_on_hosts(tier, whole);
    else
        reduce_across(tier, assign_hosts(tier));
}

void tier_reductions(Hosts *hosts, const Tasks *tasks, Tasks *local, Tasks *crossing, Transfers *inside)
{
    Planner *planner = hosts->planner;
    Tier tier = {
        .hosts = hosts, .arena = planner->arena, .wants = index_create(planner), .local = local, .crossing = crossing, .inside = inside};
    tier.offers = arena_array(planner->arena, int, hosts->count);
    tier.holds = arena_array(planner->arena, bool, hosts->count);
    for (int i = 0; i < tasks->count; i++) {
        tier.task = planner->plan->tasks.at[tasks->at[i]];
        tier_reduction(&tier);
    }
}
