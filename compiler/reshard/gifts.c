/* Values on their way to those that want them.
 *
 * Closed teams do it by collectives. For the rest, holders send, and where they would send too much, those that want a value pass it on: a
 * holder sends each of some needers a share, which that one sends to the others. Where the needers are so many that passing one share on is
 * too much for one device, a share travels along a tree.
 */
#include "reshard/loads.h"

#include <stdlib.h>

/* ---- routes ---- */

/* Elements of a gift that are passed on together. Fewer would even nothing out: passing them on is a small part of the cap, the smaller the
 * fewer devices there are; and each such part has a message for every needer. */
static int64_t part_width(const Plan *plan, const Gift *gift, int64_t unit, int64_t cap)
{
    enum { PARTS = 1536, LEAST_PARTS = 4 }; // of all that is sent, and of the cap
    int64_t volume = gift->segment.hi - gift->segment.lo, others = gift->needers.count - 1, parts = PARTS / plan->device_count,
            width = cap / (parts > LEAST_PARTS ? parts : LEAST_PARTS) / (unit * others);
    return width < 2 ? 1 : volume / ((volume + width - 1) / width);
}

/* Makes a gift's work: its holders send every element once and a remainder to all needers, or as far as they can all of it; the needers
 * pass on the rest. */
static Work spread_work(Builder *builder, const Gift *gift, int64_t cap)
{
    int64_t volume = gift->segment.hi - gift->segment.lo, others = gift->needers.count - 1,
            unit = task_element(builder->plan, gift->segment.task);
    Work work = {.devices = join_devices(builder, &gift->holders, others ? &gift->needers : NULL),
                 .first = gift->holders.count,
                 .unit = unit,
                 .least = volume,
                 .grain = 1};
    if (others) {
        int64_t width = part_width(builder->plan, gift, unit, cap);
        work.grains = volume / width;
        work.grain = others * width;
        work.least += others * (volume % width);
    }
    return work;
}

/* The same in a tree: one grain takes the whole gift to one needer. */
static Work tree_work(Builder *builder, const Gift *gift, int64_t cap)
{
    Work work = spread_work(builder, gift, cap);
    work.unit *= gift->segment.hi - gift->segment.lo;
    work.least = work.grain = 1;
    work.grains = gift->needers.count - 1;
    return work;
}

static void add_route(Builder *builder, Routes *routes, Works *works, const Gift *gift, bool tree, int64_t cap)
{
    Work work = (tree ? tree_work : spread_work)(builder, gift, cap);
    work.units = arena_array(builder->arena, int64_t, work.devices.count);
    array_push(builder->arena, routes, (Route){*gift, tree, works->count});
    array_push(builder->arena, works, work);
}

void routes_add(Builder *builder, const Gifts *gifts, int64_t cap, Routes *routes, Works *works)
{
    for (int g = 0; g < gifts->count; g++) {
        Gift gift = gifts->at[g];
        int64_t fine = fine_grain(builder->plan, &gift.segment, cap), end = gift.segment.hi;
        bool tree = gift.needers.count - 1 > fine;
        for (; gift.segment.lo < end; gift.segment.lo = gift.segment.hi) {
            gift.segment.hi = tree && end - gift.segment.lo > fine ? gift.segment.lo + fine : end;
            add_route(builder, routes, works, &gift, tree, cap);
        }
    }
}

/* ---- messages ---- */

/* What is sent in an exchange, and what must then be passed on. */
typedef struct Sending {
    Builder *builder;
    int step;
    Array(Gifts) later; // by the number of exchanges in between
} Sending;

static void pass_on(Sending *sending, int delay, const Gift *gift)
{
    while (sending->later.count <= delay)
        array_push(sending->builder->arena, &sending->later, (Gifts){0});
    array_push(sending->builder->arena, &sending->later.at[delay], *gift);
}

/* Sends demands one after another from the holders, each of which gives its share. */
typedef struct Giver {
    Sending *sending;
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
        step_send(giver->sending->builder, giver->sending->step, giver->gift->holders.at[giver->holder], device, segment);
        giver->given += width;
        lo += width;
    }
}

/* The share of needer n of what is passed on, which the others get from it. */
static void pass_share(Sending *sending, const Gift *gift, int n, int64_t lo, int64_t hi)
{
    Gift share = {.segment = gift->segment};
    share.segment.origin = ORIGIN_TO;
    share.segment.source = 0;
    share.segment.hi = share.segment.lo + hi;
    share.segment.lo += lo;
    array_push(sending->builder->arena, &share.holders, gift->needers.at[n]);
    for (int k = 0; k < gift->needers.count; k++)
        if (k != n)
            array_push(sending->builder->arena, &share.needers, gift->needers.at[k]);
    pass_on(sending, 0, &share);
}

/* Sends a gift: the holders send the first part of it to all needers, and the rest in shares that are passed on. */
static void send_spread(Sending *sending, const Gift *gift, const Work *work)
{
    int64_t direct = gift->segment.hi - gift->segment.lo, others = gift->needers.count - 1;
    const int64_t *passed = work->units + work->first;
    for (int n = 0; n < work->devices.count - work->first; n++)
        direct -= passed[n] / others;
    Giver giver = {sending, gift, work->units, 0, 0};
    int64_t lo = direct;
    for (int n = 0; n < gift->needers.count; n++) {
        int64_t share = work->devices.count > work->first ? passed[n] / others : 0;
        give(&giver, gift->needers.at[n], 0, direct);
        give(&giver, gift->needers.at[n], lo, lo + share);
        if (share)
            pass_share(sending, gift, n, lo, lo + share);
        lo += share;
    }
}

/* Sends a gift along a tree: the messages of its roots now, those of the others when they have it. */
static void send_tree(Sending *sending, const Gift *gift, const Work *work)
{
    Builder *builder = sending->builder;
    int count = work->devices.count, *degree = arena_array(builder->arena, int, count), *parent = arena_array(builder->arena, int, count),
        *depth = arena_array(builder->arena, int, count);
    Gift *shares = arena_array(builder->arena, Gift, count);
    for (int i = 0; i < count; i++)
        degree[i] = (int)work->units[i];
    tree_arrange(builder, work->first, count, degree, parent, depth);
    for (int i = work->first; i < count; i++)
        array_push(builder->arena, &shares[parent[i]].needers, work->devices.at[i]);
    for (int i = 0; i < count; i++) {
        if (!degree[i])
            continue;
        shares[i].segment = gift->segment;
        if (i < work->first) {
            for (int k = 0; k < degree[i]; k++)
                step_send(builder, sending->step, work->devices.at[i], shares[i].needers.at[k], gift->segment);
            continue;
        }
        shares[i].segment.origin = ORIGIN_TO;
        shares[i].segment.source = 0;
        array_push(builder->arena, &shares[i].holders, work->devices.at[i]);
        pass_on(sending, depth[i] - 1, &shares[i]);
    }
}

/* Sends values from their only holders. */
static void send_shares(Sending *sending, const Gifts *shares)
{
    for (int g = 0; g < shares->count; g++)
        for (int n = 0; n < shares->at[g].needers.count; n++)
            step_send(sending->builder, sending->step, shares->at[g].holders.at[0], shares->at[g].needers.at[n], shares->at[g].segment);
}

/* ---- all-to-all ---- */

static int compare_devices(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Whether an int counts the elements of an all-to-all of these messages. */
static bool is_countable(const Plan *plan, const Messages *messages, const int *order, int count)
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

/* The devices of a component of messages when each sends to every other, and there are three at least; else none. */
static Devices mutual_devices(Builder *builder, const Messages *messages, const int *order, int count, Index *index)
{
    Devices devices = {0};
    int size = 2;
    while (size * (size - 1) < count)
        size++;
    if (size < 3 || size * (size - 1) != count || !is_countable(builder->plan, messages, order, count))
        return devices;
    index_clear(index);
    for (int i = 0; i < count; i++)
        for (int end = 0; end < 2; end++) {
            const Message *message = &messages->at[order[i]];
            int device = end ? message->receiver : message->sender;
            if (index_find(index, device) >= 0)
                continue;
            if (devices.count == size)
                return (Devices){0};
            index_set(index, device, devices.count);
            array_push(builder->arena, &devices, device);
        }
    qsort(devices.at, (size_t)devices.count, sizeof *devices.at, compare_devices);
    return devices;
}

/* The sender and receiver of each message. */
static Devices *message_ends(Builder *builder, const Messages *messages)
{
    Devices *sets = arena_array(builder->arena, Devices, messages->count);
    int *ends = arena_array(builder->arena, int, 2 * messages->count);
    for (int i = 0; i < messages->count; i++) {
        ends[2 * i] = messages->at[i].sender;
        ends[2 * i + 1] = messages->at[i].receiver;
        sets[i] = (Devices){.at = ends + 2 * i, .count = 2};
    }
    return sets;
}

/* Ends an exchange: takes out the devices that all send to each other, three or more, as all-to-alls. */
static void end_exchange(Builder *builder, int exchange)
{
    step_close(builder, exchange);
    Messages messages = builder->plan->steps.at[exchange].messages, rest = {0};
    int components, *component = connect_sets(builder, message_ends(builder, &messages), NULL, messages.count, &components);
    int *begin = arena_array(builder->arena, int, components + 1),
        *order = sort_by_component(builder, component, messages.count, components, begin);
    Index *index = index_create(builder);
    for (int c = 0; c < components; c++) {
        Devices devices = mutual_devices(builder, &messages, order + begin[c], begin[c + 1] - begin[c], index);
        Messages *target = &rest;
        if (devices.count) {
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

static void begin_exchange(Sending *sending)
{
    plan_step(sending->builder, HT_EXCHANGE);
    sending->step = sending->builder->plan->steps.count - 1;
}

void routes_send(Builder *builder, const Routes *routes, const Works *works)
{
    Sending sending = {.builder = builder};
    if (!routes->count)
        return;
    begin_exchange(&sending);
    for (int r = 0; r < routes->count; r++) {
        const Route *route = &routes->at[r];
        (route->tree ? send_tree : send_spread)(&sending, &route->gift, &works->at[route->work]);
    }
    end_exchange(builder, sending.step);
    for (int round = 0; round < sending.later.count; round++) {
        Gifts rest = plan_gather(builder, &sending.later.at[round], false);
        begin_exchange(&sending);
        send_shares(&sending, &rest);
        end_exchange(builder, sending.step);
    }
}
