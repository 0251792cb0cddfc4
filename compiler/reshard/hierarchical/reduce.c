/* Hierarchical reductions.
 *
 * Step 1: each host reduces the contributions of its devices; several devices each reduce a slice.
 * Step 2: devices with the same slice, one on each host, reduce the slice across hosts; one device
 * of each host with targets gets the result. Step 3: these devices pass the result on inside their
 * hosts. A host that holds all contributions reduces alone. */
#include "reshard/hierarchical/hierarchical.h"

#include <string.h>

/* The state while one task is split by hosts. */
typedef struct Tier {
    Hosts *hosts;
    Arena *arena;
    Task task;
    Index *wants;     // index of the task's target devices
    Devices *targets; // by host: the task's target devices
    int *host;        // by contribution: the host that supplies it; -1: not assigned yet
    int *offers;      // by host: number of unassigned contributions that its devices hold
    bool *holds;      // by host: some holder on the host is a target
    bool wanting;     // some host has a holder that is a target
    int *seen;        // by host: scratch
    // host h holds the contributions at[i] for i in [begin[h], begin[h + 1])
    int *begin, *at;
    Tasks *local, *crossing;
    Transfers *inside;
} Tier;

static Devices holders_on(const Tier *tier, int source, int host) {
    Devices found = {0};
    const Devices *holders = &tier->task.sources[source];
    for (int i = 0; i < holders->count; i++)
        if (host_of(tier->hosts, holders->at[i]) == host)
            array_push(tier->arena, &found, holders->at[i]);
    return found;
}

/* ---- the host that supplies each contribution ---- */

typedef void (*Visit)(Tier *tier, int source, int host);

/* Calls a function for each host of a contribution's holders, once. */
static void visit_hosts(Tier *tier, int source, Visit visit) {
    const Devices *holders = &tier->task.sources[source];
    for (int i = 0; i < holders->count; i++) tier->seen[host_of(tier->hosts, holders->at[i])] = -1;
    for (int i = 0; i < holders->count; i++) {
        int h = host_of(tier->hosts, holders->at[i]);
        if (tier->seen[h] != source) visit(tier, source, h);
        tier->seen[h] = source;
    }
}

static void add_offer(Tier *tier, int source, int host) {
    (void)source;
    tier->offers[host]++;
}

/* Sets `holds` of the hosts on which holders are targets, and `wanting` if there are any. */
static void note_holding(Tier *tier, const Devices *holders) {
    for (int i = 0; i < holders->count; i++)
        if (index_find(tier->wants, holders->at[i]) >= 0)
            tier->holds[host_of(tier->hosts, holders->at[i])] = tier->wanting = true;
}

static void drop_offer(Tier *tier, int source, int host) {
    (void)source;
    tier->offers[host]--;
}

static void list_offer(Tier *tier, int source, int host) {
    tier->at[tier->begin[host + 1]++] = source;
}

/* Counts and lists the contributions that each host holds. */
static void count_offers(Tier *tier) {
    const int hosts = tier->hosts->count;
    int all = 0;
    memset(tier->offers, 0, sizeof *tier->offers * (size_t)hosts);
    memset(tier->holds, 0, sizeof *tier->holds * (size_t)hosts);
    tier->wanting = false;
    for (int p = 0; p < tier->task.source_count; p++) {
        visit_hosts(tier, p, add_offer);
        note_holding(tier, &tier->task.sources[p]);
    }
    tier->begin[0] = 0;
    for (int h = 0; h < hosts; all += tier->offers[h++]) tier->begin[h + 1] = all;
    tier->at = arena_array(tier->arena, int, all + 1);
    for (int p = 0; p < tier->task.source_count; p++) visit_hosts(tier, p, list_offer);
}

/* Returns the host with the most unassigned contributions; -1: there is none. `wanting`: considers
 * only hosts with a holder that is a target. */
static int best_host(const Tier *tier, bool wanting) {
    int best = -1;
    for (int h = 0; h < tier->hosts->count; h++)
        if ((tier->holds[h] || !wanting) && (best < 0 || tier->offers[h] > tier->offers[best]))
            best = h;
    return best;
}

/* Assigns each contribution to a host that holds it, beginning with the hosts that hold most. The
 * first host has a holder that is a target, if possible, because its result then needs no further
 * transfer. Returns the number of hosts that supply contributions. */
static int assign_hosts(Tier *tier) {
    int left = tier->task.source_count, count = 0;
    for (; left; count++) {
        int h = best_host(tier, !count && tier->wanting);
        for (int i = tier->begin[h]; i < tier->begin[h + 1]; i++) {
            int p = tier->at[i];
            if (tier->host[p] >= 0) continue;
            tier->host[p] = h;
            visit_hosts(tier, p, drop_offer);
            left--;
        }
    }
    return count;
}

/* ---- one host has all contributions ---- */

static int add_task(Tier *tier, Task task, Tasks *list) {
    Plan *plan = tier->hosts->planner->plan;
    array_push(tier->arena, &plan->tasks, task);
    array_push(tier->arena, list, plan->tasks.count - 1);
    return plan->tasks.count - 1;
}

/* Returns whether a host can reduce alone: it holds all contributions. If some host has a holder
 * that is a target, this host must have one, too. */
static bool has_all(const Tier *tier, int host) {
    return tier->offers[host] == tier->task.source_count && (tier->holds[host] || !tier->wanting);
}

/* Adds a task on each of the `count` hosts that hold all contributions, for an equal part each. */
static void reduce_on_hosts(Tier *tier, int count) {
    int64_t volume = tier->task.volume;
    for (int h = 0, part = 0; h < tier->hosts->count; h++) {
        if (!has_all(tier, h)) continue;
        Task task = tier->task;
        task.lo += volume * part / count;
        task.volume = volume * (part + 1) / count - volume * part / count;
        task.sources = arena_array(tier->arena, Devices, task.source_count);
        for (int p = 0; p < task.source_count; p++) task.sources[p] = holders_on(tier, p, h);
        part++;
        if (task.volume) add_task(tier, task, tier->local);
    }
}

/* ---- several hosts have contributions ---- */

/* Returns, by host, the holders of the contributions that the host supplies. */
static Devices *bringing_devices(const Tier *tier) {
    Devices *bringing = arena_array(tier->arena, Devices, tier->hosts->count);
    for (int p = 0; p < tier->task.source_count; p++) {
        Devices holders = holders_on(tier, p, tier->host[p]);
        for (int i = 0; i < holders.count; i++)
            array_push(tier->arena, &bringing[tier->host[p]], holders.at[i]);
    }
    return bringing;
}

/* Returns a host's division of the value among its targets that contribute, else among all. */
static Division wanting_division(const Tier *tier, int host, const Devices *bringing) {
    Division division = {.host = host};
    for (int i = 0; i < bringing->count; i++)
        if (index_find(tier->wants, bringing->at[i]) >= 0)
            array_push(tier->arena, &division.devices, bringing->at[i]);
    if (!division.devices.count) division.devices = tier->targets[host];
    int count = division.devices.count;
    division.shares = arena_array(tier->arena, int64_t, count);
    for (int i = 0; i < count; i++)
        division.shares[i] = tier->task.volume * (i + 1) / count - tier->task.volume * i / count;
    return division;
}

/* Returns the device on which a host reduces a slice: the slice's device by the host's division (by
 * the first division if the host has none), or a contributing device of the same or next rank. */
static int reducing_device(const Tier *tier, const Divisions *divisions, int host,
                           const Devices *bringing) {
    int wanting = slice_device(&divisions->at[0]);
    for (int d = 0; d < divisions->count; d++)
        if (divisions->at[d].host == host) wanting = slice_device(&divisions->at[d]);
    for (int i = 0; i < bringing->count; i++)
        if (bringing->at[i] == wanting) return wanting;
    return rotate_to_rank(tier->hosts, bringing, rank_of(tier->hosts, wanting)).at[0];
}

/* Adds the local task by which a host reduces a slice for task `whole`. */
static void add_local(Tier *tier, int whole, int host, int device) {
    Task task = tier->hosts->planner->plan->tasks.at[whole];
    task = (Task){.bucket = task.bucket,
                  .bundle = task.bundle,
                  .lo = task.lo,
                  .volume = task.volume,
                  .local = true,
                  .whole = whole};
    task.sources = arena_array(tier->arena, Devices, tier->begin[host + 1] - tier->begin[host]);
    for (int i = tier->begin[host]; i < tier->begin[host + 1]; i++)
        if (tier->host[tier->at[i]] == host)
            task.sources[task.source_count++] = holders_on(tier, tier->at[i], host);
    array_push(tier->arena, &task.targets, device);
    add_task(tier, task, tier->local);
}

/* Adds a slice's reduction across hosts and, if a host has several contributions, inside hosts. */
static void add_crossing(Tier *tier, const Divisions *divisions, const Devices *bringing, int hosts,
                         Task slice) {
    bool single = hosts == tier->task.source_count;
    Devices devices = {0};
    slice.origin = single ? ORIGIN_FROM : ORIGIN_LOCAL;
    slice.source_count = 0;
    slice.sources = arena_array(tier->arena, Devices, hosts);
    slice.targets = (Devices){0};
    for (int d = 0; d < divisions->count; d++)
        array_push(tier->arena, &slice.targets, slice_device(&divisions->at[d]));
    for (int h = 0; h < tier->hosts->count; h++) {
        if (!bringing[h].count) continue;
        array_push(tier->arena, &devices, reducing_device(tier, divisions, h, &bringing[h]));
        array_push(tier->arena, &slice.sources[slice.source_count], devices.at[devices.count - 1]);
        slice.source_count++;
    }
    int whole = add_task(tier, slice, tier->crossing);
    for (int i = 0; i < devices.count && !single; i++)
        add_local(tier, whole, host_of(tier->hosts, devices.at[i]), devices.at[i]);
}

static void reduce_across(Tier *tier, int hosts) {
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
            Segment segment = {.task = tier->crossing->at[tier->crossing->count - 1],
                               .lo = slice.lo,
                               .hi = slice.lo + slice.volume};
            push_inside(tier->hosts, tier->inside, segment, slice_device(&divisions.at[d]),
                        &tier->targets[divisions.at[d].host]);
        }
    }
}

/* ---- whole reductions ---- */

static void tier_reduction(Tier *tier) {
    int whole = 0;
    index_devices(tier->wants, &tier->task.targets);
    devices_by_host(tier->hosts, &tier->task.targets, tier->targets);
    tier->host = arena_array(tier->arena, int, tier->task.source_count);
    for (int p = 0; p < tier->task.source_count; p++) tier->host[p] = -1;
    count_offers(tier);
    for (int h = 0; h < tier->hosts->count; h++) whole += has_all(tier, h);
    if (whole) reduce_on_hosts(tier, whole);
    else reduce_across(tier, assign_hosts(tier));
}

void tier_reductions(Hosts *hosts, const Tasks *tasks, Tasks *local, Tasks *crossing,
                     Transfers *inside) {
    PlanBuilder *planner = hosts->planner;
    Tier tier = {.hosts = hosts,
                 .arena = planner->arena,
                 .wants = index_create(planner),
                 .local = local,
                 .crossing = crossing,
                 .inside = inside};
    tier.offers = arena_array(planner->arena, int, hosts->count);
    tier.holds = arena_array(planner->arena, bool, hosts->count);
    tier.seen = arena_array(planner->arena, int, hosts->count);
    tier.begin = arena_array(planner->arena, int, hosts->count + 1);
    tier.targets = arena_array(planner->arena, Devices, hosts->count);
    for (int i = 0; i < tasks->count; i++) {
        tier.task = planner->plan->tasks.at[tasks->at[i]];
        tier_reduction(&tier);
    }
}
