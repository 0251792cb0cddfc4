/* Makes all-gathers and broadcasts of transfers whose senders and receivers form closed groups. */
#include "reshard/copy/copy.h"
#include "reshard/devices.h"
#include "reshard/plan_builder.h"

/* A holder of a transfer, and the receivers to which the holder sends. */
typedef struct SenderGroup {
    int transfer;
    int serving;     // number of the transfer's holders that have receivers
    Devices devices; // the holder, then its receivers
    bool served;     // a collective serves the receivers
} SenderGroup;

typedef Array(SenderGroup) SenderGroups;

/* The state of gathering. Replica i is device i of each source holding; it has all elements. */
typedef struct Gathering {
    PlanBuilder *planner;
    const Transfers *transfers; // ordered by bucket
    int *replicas;  // in the current bucket, by slot: the device's replica; -1: no elements
    Index *holders; // replica i, given as the device of slot i: its holder's index in the transfer
    Index *members; // index of the devices of a component
    SenderGroups groups;
} Gathering;

static int transfer_bucket(const Plan *plan, const Transfer *transfer) {
    return plan->tasks.at[transfer->segment.task].bucket;
}

/* Returns the transfers sorted stably by bucket. */
static Transfers sort_by_bucket(PlanBuilder *planner, const Transfers *transfers) {
    const Plan *plan = planner->plan;
    int count = transfers->count, *bucket = arena_array(planner->arena, int, count);
    Transfers sorted = {arena_array(planner->arena, Transfer, count), count, count};
    for (int g = 0; g < count; g++) bucket[g] = transfer_bucket(plan, &transfers->at[g]);
    const int *order = sort_by_key(planner->arena, bucket, count, plan->buckets.count,
                                   arena_array(planner->arena, int, plan->buckets.count + 1));
    for (int g = 0; g < count; g++) sorted.at[g] = transfers->at[order[g]];
    return sorted;
}

static void find_replicas(Gathering *gathering, int bucket) {
    const Plan *plan = gathering->planner->plan;
    const Holdings *side = &plan->buckets.at[bucket].overlap->side[SIDE_FROM];
    for (int i = 0; i < plan->device_count; i++) gathering->replicas[i] = -1;
    for (int p = 0; p < side->list.count; p++)
        for (int i = 0; i < side->list.at[p].devices.count; i++)
            gathering->replicas[plan_slot(plan, side->list.at[p].devices.at[i])] = i;
}

/* Indexes the holders of a transfer by replica; if a replica has several holders, the first one. */
static void index_replicas(Gathering *gathering, const Transfer *transfer) {
    const Plan *plan = gathering->planner->plan;
    index_clear(gathering->holders);
    for (int h = transfer->holders.count - 1; h >= 0; h--) {
        int replica = gathering->replicas[plan_slot(plan, transfer->holders.at[h])];
        if (replica >= 0) index_set(gathering->holders, plan->devices[replica], h);
    }
}

/* Returns the index in the transfer of the holder in the device's replica; -1: there is none. */
static int holder_of_replica(const Gathering *gathering, int device) {
    const Plan *plan = gathering->planner->plan;
    int replica = gathering->replicas[plan_slot(plan, device)];
    return replica < 0 ? -1 : index_find(gathering->holders, plan->devices[replica]);
}

/* Appends transfer g's groups: receivers go to their replica's holder, else to holders in turn. */
static void add_groups(Gathering *gathering, int g) {
    Arena *arena = gathering->planner->arena;
    const Transfer *transfer = &gathering->transfers->at[g];
    SenderGroup *own = arena_array(arena, SenderGroup, transfer->holders.count);
    int next = 0, serving = 0, holders = transfer->holders.count;
    if (holders > 1) index_replicas(gathering, transfer);
    for (int h = 0; h < holders; h++) {
        own[h].transfer = g;
        array_push(arena, &own[h].devices, transfer->holders.at[h]);
    }
    for (int n = 0; n < transfer->receivers.count; n++) {
        int h = holders > 1 ? holder_of_replica(gathering, transfer->receivers.at[n]) : 0;
        if (h < 0) h = next++ % holders;
        serving += own[h].devices.count == 1;
        array_push(arena, &own[h].devices, transfer->receivers.at[n]);
    }
    for (int h = 0; h < holders; h++) {
        own[h].serving = serving;
        if (own[h].devices.count > 1) array_push(arena, &gathering->groups, own[h]);
    }
}

/* Returns whether a collective suits the senders of a component: each holder serves a receiver
 * (otherwise messages balance better). With several senders, each sender must also be a target of
 * its own data, because an all-gather returns the data to it. */
static bool suits_senders(const Gathering *gathering, const int *order, int count, int sending) {
    for (int i = 0; i < count; i++) {
        const SenderGroup *group = &gathering->groups.at[order[i]];
        const Transfer *transfer = &gathering->transfers->at[group->transfer];
        const Task *task = &gathering->planner->plan->tasks.at[transfer->segment.task];
        if (transfer->holders.count > group->serving ||
            (sending > 1 && devices_find(&task->targets, group->devices.at[0]) < 0))
            return false;
    }
    return true;
}

/* Appends one collective for a component; returns false if none suits. A single sender gets none
 * if it has one receiver, or if `broadcasts` is not set. */
static bool add_gather(Gathering *gathering, const Components *components, int c,
                       const int *senders, bool broadcasts) {
    PlanBuilder *planner = gathering->planner;
    const int *order = components->sets + components->begin[c];
    int count = components->begin[c + 1] - components->begin[c];
    ClosedGroup group = closed_group(planner, components, c, senders, gathering->members);
    Devices members = group.members;
    if (!members.count || (group.leading == 1 && (members.count == 2 || !broadcasts)) ||
        !suits_senders(gathering, order, count, group.leading))
        return false;
    Segments *parts = arena_array(planner->arena, Segments, members.count);
    for (int i = 0; i < count; i++) {
        const Segment *segment =
            &gathering->transfers->at[gathering->groups.at[order[i]].transfer].segment;
        array_push(planner->arena, &parts[index_find(gathering->members, senders[order[i]])],
                   *segment);
    }
    add_collective(planner, members, parts, HT_ALL_GATHER);
    return true;
}

/* Appends the part of a transfer that collectives do not serve: all of it, some groups, or none. */
static void add_rest(PlanBuilder *planner, const Transfer *transfer, const SenderGroup *groups,
                     int count, Transfers *rest) {
    bool any = false, all = true;
    for (int i = 0; i < count; i++) {
        any = any || groups[i].served;
        all = all && groups[i].served;
    }
    if (all) return;
    Transfer left = any ? (Transfer){.segment = transfer->segment} : *transfer;
    for (int i = 0; any && i < count; i++) {
        if (groups[i].served) continue;
        array_push(planner->arena, &left.holders, groups[i].devices.at[0]);
        for (int k = 1; k < groups[i].devices.count; k++)
            array_push(planner->arena, &left.receivers, groups[i].devices.at[k]);
    }
    array_push(planner->arena, rest, left);
}

/* Appends a collective for each component that suits one, and marks the groups that it serves. */
static void gather_components(Gathering *gathering, bool broadcasts) {
    PlanBuilder *planner = gathering->planner;
    int count = gathering->groups.count, *buckets = arena_array(planner->arena, int, count),
        *senders = arena_array(planner->arena, int, count);
    Devices *sets = arena_array(planner->arena, Devices, count);
    for (int i = 0; i < count; i++) {
        const SenderGroup *group = &gathering->groups.at[i];
        sets[i] = group->devices;
        senders[i] = group->devices.at[0];
        buckets[i] = transfer_bucket(planner->plan, &gathering->transfers->at[group->transfer]);
    }
    Components components = connect_sets(planner, sets, buckets, count);
    for (int c = 0; c < components.count; c++) {
        bool done = add_gather(gathering, &components, c, senders, broadcasts);
        for (int i = components.begin[c]; i < components.begin[c + 1]; i++)
            gathering->groups.at[components.sets[i]].served = done;
    }
}

Transfers gather_transfers(PlanBuilder *planner, const Transfers *transfers, bool broadcasts) {
    const Plan *plan = planner->plan;
    Transfers rest = {0}, sorted = sort_by_bucket(planner, transfers);
    if (!transfers->count) return rest;
    Gathering gathering = {.planner = planner,
                           .transfers = &sorted,
                           .replicas = arena_array(planner->arena, int, plan->device_count)};
    gathering.holders = index_create(planner);
    gathering.members = index_create(planner);
    for (int g = 0; g < sorted.count; g++) {
        int bucket = transfer_bucket(plan, &sorted.at[g]);
        if (!g || bucket != transfer_bucket(plan, &sorted.at[g - 1]))
            find_replicas(&gathering, bucket);
        add_groups(&gathering, g);
    }
    const SenderGroups *groups = &gathering.groups;
    gather_components(&gathering, broadcasts);
    for (int i = 0, end; i < groups->count; i = end) {
        for (end = i + 1;
             end < groups->count && groups->at[end].transfer == groups->at[i].transfer;)
            end++;
        add_rest(planner, &sorted.at[groups->at[i].transfer], groups->at + i, end - i, &rest);
    }
    return rest;
}
