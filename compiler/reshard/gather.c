/* Values that are handed on by collectives: all-gathers and broadcasts, where those who give and those who take form closed teams. */
#include "reshard/loads.h"

#include <stdlib.h>

/* A holder of a gift with the needers that it serves. */
typedef struct Team {
    int gift;
    int serving;     // holders of the gift that serve somebody
    Devices devices; // the holder first
} Team;

typedef Array(Team) Teams;

/* What gathering needs. A device's lane is its place among those that hold the same values of the source. */
typedef struct Gathering {
    Builder *builder;
    const Gifts *gifts; // stack by stack
    int *lanes;         // in the stack at hand, by slot; -1: it holds nothing
    Index *holders;     // of a gift, by the slot that their lane counts
    Index *members;     // of a component
    Teams teams;
} Gathering;

/* ---- teams ---- */

static int gift_stack(const Plan *plan, const Gift *gift) { return plan->tasks.at[gift->segment.task].stack; }

/* Gifts stack by stack, of each in their order. */
static Gifts sort_by_stack(Builder *builder, const Gifts *gifts)
{
    const Plan *plan = builder->plan;
    int *next = arena_array(builder->arena, int, plan->stacks.count + 1);
    Gifts sorted = {arena_array(builder->arena, Gift, gifts->count), gifts->count, gifts->count};
    for (int g = 0; g < gifts->count; g++)
        next[gift_stack(plan, &gifts->at[g]) + 1]++;
    for (int s = 0; s < plan->stacks.count; s++)
        next[s + 1] += next[s];
    for (int g = 0; g < gifts->count; g++)
        sorted.at[next[gift_stack(plan, &gifts->at[g])]++] = gifts->at[g];
    return sorted;
}

static void find_lanes(Gathering *gathering, int stack)
{
    const Plan *plan = gathering->builder->plan;
    const CellSide *side = &plan->stacks.at[stack].cells->side[SIDE_FROM];
    for (int i = 0; i < plan->device_count; i++)
        gathering->lanes[i] = -1;
    for (int p = 0; p < side->piece_count; p++)
        for (int i = 0; i < side->pieces[p].device_count; i++)
            gathering->lanes[plan_slot(plan, side->pieces[p].devices[i])] = i;
}

/* Enters the holders of a gift by their lanes, the first of each lane. */
static void index_lanes(Gathering *gathering, const Gift *gift)
{
    const Plan *plan = gathering->builder->plan;
    index_clear(gathering->holders);
    for (int h = gift->holders.count - 1; h >= 0; h--) {
        int lane = gathering->lanes[plan_slot(plan, gift->holders.at[h])];
        if (lane >= 0)
            index_set(gathering->holders, plan->devices[lane], h);
    }
}

/* The holder in a device's lane, or -1. */
static int holder_in_lane(const Gathering *gathering, int device)
{
    const Plan *plan = gathering->builder->plan;
    int lane = gathering->lanes[plan_slot(plan, device)];
    return lane < 0 ? -1 : index_find(gathering->holders, plan->devices[lane]);
}

/* Divides the needers into teams, each with the holder that serves it: the one in the needer's own lane; needers without one go round. */
static void add_teams(Gathering *gathering, int g)
{
    Arena *arena = gathering->builder->arena;
    const Gift *gift = &gathering->gifts->at[g];
    Team *own = arena_array(arena, Team, gift->holders.count);
    int next = 0, serving = 0, holders = gift->holders.count;
    if (holders > 1)
        index_lanes(gathering, gift);
    for (int h = 0; h < holders; h++) {
        own[h].gift = g;
        array_push(arena, &own[h].devices, gift->holders.at[h]);
    }
    for (int n = 0; n < gift->needers.count; n++) {
        int h = holders > 1 ? holder_in_lane(gathering, gift->needers.at[n]) : 0;
        if (h < 0)
            h = next++ % holders;
        serving += own[h].devices.count == 1;
        array_push(arena, &own[h].devices, gift->needers.at[n]);
    }
    for (int h = 0; h < holders; h++) {
        own[h].serving = serving;
        if (own[h].devices.count > 1)
            array_push(arena, &gathering->teams, own[h]);
    }
}

/* ---- components ---- */

static int compare_devices(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Adds a device to a component unless it is there. */
static void add_member(Gathering *gathering, Devices *members, int device)
{
    if (index_find(gathering->members, device) >= 0)
        return;
    index_set(gathering->members, device, members->count);
    array_push(gathering->builder->arena, members, device);
}

/* The devices of a component whose teams are all of the same devices: the holders in the order of their gifts, then the rest, ascending.
 * The index of members has their places. The result is empty when the teams differ. */
static Devices closed_members(Gathering *gathering, const int *order, int count, int *holders)
{
    Devices members = {0};
    index_clear(gathering->members);
    for (int i = 0; i < count; i++)
        add_member(gathering, &members, gathering->teams.at[order[i]].devices.at[0]);
    *holders = members.count;
    const Devices *first = &gathering->teams.at[order[0]].devices;
    for (int k = 1; k < first->count; k++)
        add_member(gathering, &members, first->at[k]);
    if (members.count != first->count)
        return (Devices){0};
    for (int i = 1; i < count; i++) {
        const Devices *team = &gathering->teams.at[order[i]].devices;
        if (team->count != members.count)
            return (Devices){0};
        for (int k = 0; k < team->count; k++)
            if (index_find(gathering->members, team->at[k]) < 0)
                return (Devices){0};
    }
    qsort(members.at + *holders, (size_t)(members.count - *holders), sizeof *members.at, compare_devices);
    return members;
}

/* Whether every holder wants what it gives itself, as an all-gather hands it out. */
static bool holders_keep(const Gathering *gathering, const int *order, int count)
{
    for (int i = 0; i < count; i++) {
        const Team *team = &gathering->teams.at[order[i]];
        const Task *task = &gathering->builder->plan->tasks.at[gathering->gifts->at[team->gift].segment.task];
        if (devices_find(&task->wanted, team->devices.at[0]) < 0)
            return false;
    }
    return true;
}

/* Whether all holders of the gifts serve somebody; where some would be idle, messages divide the work better. */
static bool holders_serve(const Gathering *gathering, const int *order, int count)
{
    for (int i = 0; i < count; i++) {
        const Team *team = &gathering->teams.at[order[i]];
        if (gathering->gifts->at[team->gift].holders.count > team->serving)
            return false;
    }
    return true;
}

/* Makes one collective of a component when it is one. Two devices of which one gives are better served by a message. */
static bool add_gather(Gathering *gathering, const int *order, int count, bool broadcasts)
{
    Builder *builder = gathering->builder;
    int holders;
    Devices members = closed_members(gathering, order, count, &holders);
    if (!members.count || !may_collect(builder, &members) || !holders_serve(gathering, order, count) ||
        (holders == 1 && (members.count == 2 || !broadcasts)) || (holders > 1 && !holders_keep(gathering, order, count)))
        return false;
    Segments *parts = arena_array(builder->arena, Segments, members.count);
    for (int i = 0; i < count; i++) {
        const Team *team = &gathering->teams.at[order[i]];
        array_push(builder->arena, &parts[index_find(gathering->members, team->devices.at[0])], gathering->gifts->at[team->gift].segment);
    }
    plan_collective(builder, members, parts, HT_ALL_GATHER);
    return true;
}

/* ---- what is left ---- */

/* Appends what collectives left of a gift: all of it where they did nothing, else the teams that are not served. */
static void keep_rest(Builder *builder, const Gift *gift, const Team *teams, const bool *served, int count, Gifts *rest)
{
    bool any = false, all = true;
    for (int i = 0; i < count; i++) {
        any = any || served[i];
        all = all && served[i];
    }
    if (all)
        return;
    Gift left = any ? (Gift){.segment = gift->segment} : *gift;
    for (int i = 0; any && i < count; i++) {
        if (served[i])
            continue;
        array_push(builder->arena, &left.holders, teams[i].devices.at[0]);
        for (int k = 1; k < teams[i].devices.count; k++)
            array_push(builder->arena, &left.needers, teams[i].devices.at[k]);
    }
    array_push(builder->arena, rest, left);
}

/* Whether the team at i is done by a collective; all teams of its component are, or none. */
static bool *gather_components(Gathering *gathering, bool broadcasts)
{
    Builder *builder = gathering->builder;
    const Teams *teams = &gathering->teams;
    Devices *sets = arena_array(builder->arena, Devices, teams->count);
    int *stacks = arena_array(builder->arena, int, teams->count);
    for (int i = 0; i < teams->count; i++) {
        sets[i] = teams->at[i].devices;
        stacks[i] = gift_stack(builder->plan, &gathering->gifts->at[teams->at[i].gift]);
    }
    int components, *component = connect_sets(builder, sets, stacks, teams->count, &components);
    int *begin = arena_array(builder->arena, int, components + 1),
        *order = sort_by_component(builder, component, teams->count, components, begin);
    bool *done = arena_array(builder->arena, bool, components), *served = arena_array(builder->arena, bool, teams->count);
    for (int c = 0; c < components; c++)
        done[c] = add_gather(gathering, order + begin[c], begin[c + 1] - begin[c], broadcasts);
    for (int i = 0; i < teams->count; i++)
        served[i] = done[component[i]];
    return served;
}

Gifts plan_gather(Builder *builder, const Gifts *gifts, bool broadcasts)
{
    const Plan *plan = builder->plan;
    Gifts rest = {0}, sorted = sort_by_stack(builder, gifts);
    if (!gifts->count)
        return rest;
    Gathering gathering = {.builder = builder, .gifts = &sorted, .lanes = arena_array(builder->arena, int, plan->device_count)};
    gathering.holders = index_create(builder);
    gathering.members = index_create(builder);
    for (int g = 0; g < sorted.count; g++) {
        int stack = gift_stack(plan, &sorted.at[g]);
        if (!g || stack != gift_stack(plan, &sorted.at[g - 1]))
            find_lanes(&gathering, stack);
        add_teams(&gathering, g);
    }
    const Teams *teams = &gathering.teams;
    const bool *served = gather_components(&gathering, broadcasts);
    for (int i = 0, end; i < teams->count; i = end) {
        for (end = i + 1; end < teams->count && teams->at[end].gift == teams->at[i].gift;)
            end++;
        keep_rest(builder, &sorted.at[teams->at[i].gift], teams->at + i, served + i, end - i, &rest);
    }
    return rest;
}
