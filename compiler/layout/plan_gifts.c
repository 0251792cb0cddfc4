/* Values on their way to those that want them: all-gathers and broadcasts where teams are closed, else balanced messages.
 *
 * Where more devices need a value than hold it, the holders send some of it to all and divide the rest among the needers, which pass their
 * shares on in a second round; so nobody sends much more than an even share.
 */
#include "layout/plan_build.h"

#include <stdlib.h>

typedef Array(Gift) Gifts;

/* A holder of a gift with the needers that it serves. */
typedef struct Team {
    int gift;
    int serving;     // holders of the gift that serve somebody
    Devices devices; // the holder first
} Team;

typedef Array(Team) Teams;

/* ---- collectives ---- */

/* By stack and slot, the place of a device among those that hold the same piece of the source; -1 for others. */
static int *lanes_of(Builder *builder)
{
    const Plan *plan = builder->plan;
    int count = plan->stacks.count * plan->device_count, *lanes = arena_array(builder->arena, int, count);
    for (int i = 0; i < count; i++)
        lanes[i] = -1;
    for (int s = 0; s < plan->stacks.count; s++) {
        const CellSide *side = &plan->stacks.at[s].cells->side[SIDE_FROM];
        for (int p = 0; p < side->piece_count; p++)
            for (int i = 0; i < side->pieces[p].device_count; i++)
                lanes[s * plan->device_count + plan_slot(plan, side->pieces[p].devices[i])] = i;
    }
    return lanes;
}

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

/* By lane, the first of a gift's holders that is in it, plus 1; 0 where there is none. */
static int *holders_by_lane(Builder *builder, const Gift *gift, const int *lanes)
{
    int *holders = arena_array(builder->arena, int, builder->plan->device_count);
    for (int h = gift->holders.count - 1; h >= 0; h--) {
        int lane = lanes[plan_slot(builder->plan, gift->holders.at[h])];
        if (lane >= 0)
            holders[lane] = h + 1;
    }
    return holders;
}

/* Divides the needers into teams, each with the holder that serves it: the one in the needer's own lane; needers without one go round. */
static void add_teams(Builder *builder, const Gifts *gifts, int g, const int *lanes, Teams *teams)
{
    const Gift *gift = &gifts->at[g];
    Team *own = arena_array(builder->arena, Team, gift->holders.count);
    int *by_lane = gift->holders.count > 1 ? holders_by_lane(builder, gift, lanes) : NULL, next = 0, serving = 0;
    for (int h = 0; h < gift->holders.count; h++) {
        own[h].gift = g;
        array_push(builder->arena, &own[h].devices, gift->holders.at[h]);
    }
    for (int n = 0; n < gift->needers.count; n++) {
        int lane = lanes[plan_slot(builder->plan, gift->needers.at[n])], h = by_lane && lane >= 0 ? by_lane[lane] - 1 : -1;
        if (h < 0)
            h = next++ % gift->holders.count;
        serving += own[h].devices.count == 1;
        array_push(builder->arena, &own[h].devices, gift->needers.at[n]);
    }
    for (int h = 0; h < gift->holders.count; h++) {
        own[h].serving = serving;
        if (own[h].devices.count > 1)
            array_push(builder->arena, teams, own[h]);
    }
}

static int compare_devices(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* The devices of a component whose teams are all of the same devices: the holders in the order of their gifts, then the rest, ascending.
 * The result is empty when the teams differ. */
static Devices closed_devices(Builder *builder, const Teams *teams, const int *order, int count, int *holders)
{
    Devices devices = {0}, rest = {0};
    int size = teams->at[order[0]].devices.count;
    for (int i = 0; i < count; i++) {
        const Team *team = &teams->at[order[i]];
        if (team->devices.count != size)
            return (Devices){0};
        if (devices_find(&devices, team->devices.at[0]) < 0)
            array_push(builder->arena, &devices, team->devices.at[0]);
    }
    *holders = devices.count;
    const Team *first = &teams->at[order[0]];
    for (int k = 0; k < size; k++)
        if (devices_find(&devices, first->devices.at[k]) < 0)
            array_push(builder->arena, &rest, first->devices.at[k]);
    if (devices.count + rest.count != size)
        return (Devices){0};
    if (rest.count)
        qsort(rest.at, (size_t)rest.count, sizeof *rest.at, compare_devices);
    for (int k = 0; k < rest.count; k++)
        array_push(builder->arena, &devices, rest.at[k]);
    for (int i = 1; i < count; i++)
        for (int k = 0; k < size; k++)
            if (devices_find(&devices, teams->at[order[i]].devices.at[k]) < 0)
                return (Devices){0};
    return devices;
}

/* Whether every holder wants what it gives itself, as an all-gather hands it out. */
static bool holders_keep(const Builder *builder, const Gifts *gifts, const Teams *teams, const int *order, int count)
{
    for (int i = 0; i < count; i++) {
        const Team *team = &teams->at[order[i]];
        const Task *task = &builder->plan->tasks.at[gifts->at[team->gift].segment.task];
        if (devices_find(&task->wanted, team->devices.at[0]) < 0)
            return false;
    }
    return true;
}

/* Whether all holders of the gifts serve somebody; where some would be idle, messages divide the work better. */
static bool holders_serve(const Gifts *gifts, const Teams *teams, const int *order, int count)
{
    for (int i = 0; i < count; i++)
        if (gifts->at[teams->at[order[i]].gift].holders.count > teams->at[order[i]].serving)
            return false;
    return true;
}

/* Makes one collective of a component when it is one. Two devices of which one gives are better served by a message. */
static bool add_gather(Builder *builder, const Gifts *gifts, const Teams *teams, const int *order, int count)
{
    int holders;
    Devices devices = closed_devices(builder, teams, order, count, &holders);
    if (!devices.count || !holders_serve(gifts, teams, order, count) || (holders == 1 && devices.count == 2) ||
        (holders > 1 && !holders_keep(builder, gifts, teams, order, count)))
        return false;
    Segments *parts = arena_array(builder->arena, Segments, devices.count);
    for (int i = 0; i < count; i++) {
        const Team *team = &teams->at[order[i]];
        array_push(builder->arena, &parts[devices_find(&devices, team->devices.at[0])], gifts->at[team->gift].segment);
    }
    plan_collective(builder, devices, parts, holders, HT_ALL_GATHER, HT_BROADCAST);
    return true;
}

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

/* Does by collectives what can be done so, of gifts stack by stack; the result has the gifts that are left. */
static Gifts gather(Builder *builder, const Gifts *gifts, const int *lanes)
{
    Teams teams = {0};
    Gifts rest = {0};
    const Plan *plan = builder->plan;
    for (int g = 0; g < gifts->count; g++)
        add_teams(builder, gifts, g, lanes + gift_stack(plan, &gifts->at[g]) * plan->device_count, &teams);
    Devices *sets = arena_array(builder->arena, Devices, teams.count);
    int *stacks = arena_array(builder->arena, int, teams.count);
    for (int i = 0; i < teams.count; i++) {
        sets[i] = teams.at[i].devices;
        stacks[i] = gift_stack(plan, &gifts->at[teams.at[i].gift]);
    }
    int components, *component = connect_sets(builder, sets, stacks, teams.count, &components);
    int *begin = arena_array(builder->arena, int, components + 1),
        *order = sort_by_component(builder, component, teams.count, components, begin);
    bool *done = arena_array(builder->arena, bool, components), *served = arena_array(builder->arena, bool, teams.count);
    for (int c = 0; c < components; c++)
        done[c] = add_gather(builder, gifts, &teams, order + begin[c], begin[c + 1] - begin[c]);
    for (int i = 0; i < teams.count; i++)
        served[i] = done[component[i]];
    for (int i = 0, end; i < teams.count; i = end) {
        for (end = i + 1; end < teams.count && teams.at[end].gift == teams.at[i].gift;)
            end++;
        keep_rest(builder, &gifts->at[teams.at[i].gift], teams.at + i, served + i, end - i, &rest);
    }
    return rest;
}

/* ---- messages ---- */

/* Sends demands one after another from the holders, each of which gives its share. */
typedef struct Giver {
    Builder *builder;
    int step;
    const Gift *gift;
    const int64_t *shares;
    int holder;
    int64_t given; // of the holder's share
} Giver;

/* Sends [lo, hi) of the gift to a device. */
static void give(Giver *giver, int device, int64_t lo, int64_t hi)
{
    while (lo < hi) {
        while (giver->given == giver->shares[giver->holder]) {
            giver->holder++;
            giver->given = 0;
        }
        int64_t left = giver->shares[giver->holder] - giver->given, width = hi - lo < left ? hi - lo : left;
        Segment segment = giver->gift->segment;
        segment.hi = segment.lo + lo + width;
        segment.lo += lo;
        step_send(giver->builder, giver->step, giver->gift->holders.at[giver->holder], device, segment);
        giver->given += width;
        lo += width;
    }
}

/* The bytes that the holders can still send before they are above the cap. */
static int64_t spare_capacity(const Builder *builder, const Devices *holders, int64_t cap)
{
    int64_t spare = 0;
    for (int h = 0; h < holders->count; h++) {
        int64_t load = builder->sent[plan_slot(builder->plan, holders->at[h])];
        spare += load < cap ? cap - load : 0;
    }
    return spare;
}

/* How much of a gift its holders send to all needers themselves: as much as they can without going above the cap; the rest they send once,
 * to be passed on. */
static int64_t direct_volume(const Builder *builder, const Gift *gift, int64_t volume, int64_t cap, bool last)
{
    if (last || gift->needers.count == 1)
        return volume;
    int64_t spare = spare_capacity(builder, &gift->holders, cap) / task_element(builder->plan, gift->segment.task);
    int64_t direct = (spare - volume) / (gift->needers.count - 1);
    return direct < 0 ? 0 : direct < volume ? direct : volume;
}

/* The share of needer n of what is passed on, which the others get from it. */
static void pass_on(Builder *builder, const Gift *gift, int n, int64_t lo, int64_t hi, Gifts *next)
{
    Gift share = {.segment = gift->segment};
    share.segment.origin = ORIGIN_TO;
    share.segment.source = 0;
    share.segment.hi = share.segment.lo + hi;
    share.segment.lo += lo;
    array_push(builder->arena, &share.holders, gift->needers.at[n]);
    for (int k = 0; k < gift->needers.count; k++)
        if (k != n)
            array_push(builder->arena, &share.needers, gift->needers.at[k]);
    array_push(builder->arena, next, share);
}

/* Sends a gift; what the needers shall pass on goes to `next`. */
static void send_gift(Builder *builder, int step, const Gift *gift, int64_t cap, bool last, Gifts *next)
{
    int64_t volume = gift->segment.hi - gift->segment.lo, direct = direct_volume(builder, gift, volume, cap, last), rest = volume - direct;
    int needers = gift->needers.count, element = task_element(builder->plan, gift->segment.task);
    int64_t *shares = arena_array(builder->arena, int64_t, gift->holders.count);
    spread_evenly(builder, &gift->holders, direct * needers + rest, element, cap, builder->sent, shares);
    int64_t *passed = arena_array(builder->arena, int64_t, needers), lo = direct;
    if (rest)
        spread_evenly(builder, &gift->needers, rest, (needers - 1) * element, 0, builder->sent, passed);
    Giver giver = {builder, step, gift, shares, 0, 0};
    for (int n = 0; n < needers; lo += passed[n++]) {
        give(&giver, gift->needers.at[n], 0, direct);
        give(&giver, gift->needers.at[n], lo, lo + passed[n]);
        if (passed[n])
            pass_on(builder, gift, n, lo, lo + passed[n], next);
    }
}

/* ---- all-to-all ---- */

/* Whether an int counts the elements of an all-to-all of these messages. */
static bool messages_countable(const Plan *plan, const Messages *messages, const int *order, int count)
{
    int64_t bytes = 0;
    int element = 8;
    for (int i = 0; i < count; i++) {
        const Message *message = &messages->at[order[i]];
        int least = segments_element(plan, &message->segments, 1);
        bytes += message->bytes;
        element = least < element ? least : element;
    }
    return bytes / element <= INT32_MAX;
}

/* Takes out of an exchange the devices that all send to each other, three or more, as all-to-alls. */
static void extract_all_to_alls(Builder *builder, int exchange)
{
    Messages messages = builder->plan->steps.at[exchange].messages, rest = {0};
    Devices *sets = arena_array(builder->arena, Devices, messages.count);
    for (int i = 0; i < messages.count; i++) {
        array_push(builder->arena, &sets[i], messages.at[i].sender);
        array_push(builder->arena, &sets[i], messages.at[i].receiver);
    }
    int components, *component = connect_sets(builder, sets, NULL, messages.count, &components);
    int *begin = arena_array(builder->arena, int, components + 1),
        *order = sort_by_component(builder, component, messages.count, components, begin);
    for (int c = 0; c < components; c++) {
        int count = begin[c + 1] - begin[c];
        Devices devices = {0};
        int size = 2;
        while (size * (size - 1) < count)
            size++;
        bool full = size > 2 && size * (size - 1) == count && messages_countable(builder->plan, &messages, order + begin[c], count);
        for (int i = begin[c]; full && i < begin[c + 1]; i++)
            if (devices_find(&devices, messages.at[order[i]].sender) < 0)
                array_push(builder->arena, &devices, messages.at[order[i]].sender);
        full = full && devices.count == size;
        for (int i = begin[c]; full && i < begin[c + 1]; i++)
            full = devices_find(&devices, messages.at[order[i]].receiver) >= 0;
        Messages *target = &rest;
        if (full) {
            qsort(devices.at, (size_t)size, sizeof *devices.at, compare_devices);
            Step *step = plan_step(builder, HT_ALL_TO_ALL);
            step->group = devices;
            target = &step->messages;
        }
        for (int i = begin[c]; i < begin[c + 1]; i++)
            array_push(builder->arena, target, messages.at[order[i]]);
    }
    builder->plan->steps.at[exchange].messages = rest;
}

/* ---- all together ---- */

/* An even share of all that is sent in the end, by the steps so far and by these gifts. */
static int64_t even_load(const Builder *builder, const Gifts *gifts)
{
    int64_t total = 0;
    for (int i = 0; i < builder->plan->device_count; i++)
        total += builder->sent[i];
    for (int g = 0; g < gifts->count; g++)
        total += segment_bytes(builder->plan, &gifts->at[g].segment) * gifts->at[g].needers.count;
    return total / builder->plan->device_count + 1;
}

/* A gift and its place in the list. */
typedef struct Ranked {
    int holders, place;
} Ranked;

static int compare_ranked(const void *a, const void *b)
{
    const Ranked *x = a, *y = b;
    return x->holders != y->holders ? x->holders - y->holders : x->place - y->place;
}

/* Sends all gifts, first those with the least choice of a sender. */
static void send_all(Builder *builder, const Gifts *gifts, bool last, Gifts *next)
{
    if (!gifts->count)
        return;
    plan_count(builder);
    int64_t even = even_load(builder, gifts), cap = even + even / 4;
    Ranked *order = arena_array(builder->arena, Ranked, gifts->count);
    for (int g = 0; g < gifts->count; g++)
        order[g] = (Ranked){gifts->at[g].holders.count, g};
    qsort(order, (size_t)gifts->count, sizeof *order, compare_ranked);
    plan_step(builder, HT_EXCHANGE);
    int exchange = builder->plan->steps.count - 1;
    for (int g = 0; g < gifts->count; g++)
        send_gift(builder, exchange, &gifts->at[order[g].place], cap, last, next);
    extract_all_to_alls(builder, exchange);
}

void plan_gifts(Builder *builder)
{
    const int *lanes = lanes_of(builder);
    Gifts given = {builder->gifts.at, builder->gifts.count, builder->gifts.capacity}, next = {0};
    Gifts gifts = sort_by_stack(builder, &given);
    Gifts rest = gather(builder, &gifts, lanes);
    send_all(builder, &rest, false, &next);
    gifts = sort_by_stack(builder, &next);
    rest = gather(builder, &gifts, lanes);
    send_all(builder, &rest, true, &next);
    plan_drop_empty(builder);
}
