/* Values on their way to those that want them.
 *
 * Closed teams do it by collectives. For the rest, holders send, and where they would send too much, those that want a value pass it on: a
 * holder sends each of some receivers a share, which that one sends to the others. Where the receivers are so many that passing one share on is
 * too much for one device, a share travels along a tree.
 */
#include "reshard/loads.h"

#include <stdlib.h>

/* ---- routes ---- */

/* Elements of a transfer that are passed on together. Fewer would even nothing out: passing them on is a small part of the cap, the smaller the
 * fewer devices there are; and each such part has a message for every receiver. */
static int64_t part_width(const Plan *plan, const Transfer *transfer, int64_t unit, int64_t cap)
{
    enum { PARTS = 1536, LEAST_PARTS = 4 }; // of all that is sent, and of the cap
    int64_t volume = transfer->segment.hi - transfer->segment.lo, others = transfer->receivers.count - 1, parts = PARTS / plan->device_count,
            width = cap / (parts > LEAST_PARTS ? parts : LEAST_PARTS) / (unit * others);
    return width < 2 ? 1 : volume / ((volume + width - 1) / width);
}

/* Makes a transfer's job: its holders send every element once and a remainder to all receivers, or as far as they can all of it; the receivers
 * pass on the rest. */
static Job spread_job(Planner *planner, const Transfer *transfer, int64_t cap)
{
    int64_t volume = transfer->segment.hi - transfer->segment.lo, others = transfer->receivers.count - 1,
            unit = task_element(planner->plan, transfer->segment.task);
    Job job = {.devices = join_devices(planner, &transfer->holders, others ? &transfer->receivers : NULL),
                 .first = transfer->holders.count,
                 .unit = unit,
                 .least = volume,
                 .grain = 1};
    if (others) {
        int64_t width = part_width(planner->plan, transfer, unit, cap);
        job.grains = volume / width;
        job.grain = others * width;
        job.least += others * (volume % width);
    }
    return job;
}

/* The same in a tree: one grain takes the whole transfer to one receiver. */
static Job tree_job(Planner *planner, const Transfer *transfer, int64_t cap)
{
    Job job = spread_job(planner, transfer, cap);
    job.unit *= transfer->segment.hi - transfer->segment.lo;
    job.least = job.grain = 1;
    job.grains = transfer->receivers.count - 1;
    return job;
}

static void add_route(Planner *planner, Routes *routes, Jobs *jobs, const Transfer *transfer, bool tree, int64_t cap)
{
    Job job = (tree ? tree_job : spread_job)(planner, transfer, cap);
    job.units = arena_array(planner->arena, int64_t, job.devices.count);
    array_push(planner->arena, routes, (Route){*transfer, tree, jobs->count});
    array_push(planner->arena, jobs, job);
}

void routes_add(Planner *planner, const Transfers *transfers, int64_t cap, Routes *routes, Jobs *jobs)
{
    for (int g = 0; g < transfers->count; g++) {
        Transfer transfer = transfers->at[g];
        int64_t fine = fine_grain(planner->plan, &transfer.segment, cap), end = transfer.segment.hi;
        bool tree = transfer.receivers.count - 1 > fine;
        for (; transfer.segment.lo < end; transfer.segment.lo = transfer.segment.hi) {
            transfer.segment.hi = tree && end - transfer.segment.lo > fine ? transfer.segment.lo + fine : end;
            add_route(planner, routes, jobs, &transfer, tree, cap);
        }
    }
}

/* ---- messages ---- */

/* What is sent in an exchange, and what must then be passed on. */
typedef struct Sending {
    Planner *planner;
    int step;
    Array(Transfers) later; // by the number of exchanges in between
} Sending;

static void pass_on(Sending *sending, int delay, const Transfer *transfer)
{
    while (sending->later.count <= delay)
        array_push(sending->planner->arena, &sending->later, (Transfers){0});
    array_push(sending->planner->arena, &sending->later.at[delay], *transfer);
}

/* Sends demands one after another from the holders, each of which gives its share. */
typedef struct Giver {
    Sending *sending;
    const Transfer *transfer;
    const int64_t *shares;
    int holder;
    int64_t given; // of the holder's share
} Giver;

/* Sends [lo, hi) of the transfer to a device. */
static void give(Giver *giver, int device, int64_t lo, int64_t hi)
{
    while (lo < hi) {
        while (giver->given == giver->shares[giver->holder]) {
            giver->holder++;
            giver->given = 0;
        }
        int64_t left = giver->shares[giver->holder] - giver->given, width = hi - lo < left ? hi - lo : left;
        Segment segment = giver->transfer->segment;
        segment.hi = segment.lo + lo + width;
        segment.lo += lo;
        step_send(giver->sending->planner, giver->sending->step, giver->transfer->holders.at[giver->holder], device, segment);
        giver->given += width;
        lo += width;
    }
}

/* The share of receiver n of what is passed on, which the others get from it. */
static void pass_share(Sending *sending, const Transfer *transfer, int n, int64_t lo, int64_t hi)
{
    Transfer share = {.segment = transfer->segment};
    share.segment.origin = ORIGIN_TO;
    share.segment.source = 0;
    share.segment.hi = share.segment.lo + hi;
    share.segment.lo += lo;
    array_push(sending->planner->arena, &share.holders, transfer->receivers.at[n]);
    for (int k = 0; k < transfer->receivers.count; k++)
        if (k != n)
            array_push(sending->planner->arena, &share.receivers, transfer->receivers.at[k]);
    pass_on(sending, 0, &share);
}

/* Sends a transfer: the holders send the first part of it to all receivers, and the rest in shares that are passed on. */
static void send_spread(Sending *sending, const Transfer *transfer, const Job *job)
{
    int64_t direct = transfer->segment.hi - transfer->segment.lo, others = transfer->receivers.count - 1;
    const int64_t *passed = job->units + job->first;
    for (int n = 0; n < job->devices.count - job->first; n++)
        direct -= passed[n] / others;
    Giver giver = {sending, transfer, job->units, 0, 0};
    int64_t lo = direct;
    for (int n = 0; n < transfer->receivers.count; n++) {
        int64_t share = job->devices.count > job->first ? passed[n] / others : 0;
        give(&giver, transfer->receivers.at[n], 0, direct);
        give(&giver, transfer->receivers.at[n], lo, lo + share);
        if (share)
            pass_share(sending, transfer, n, lo, lo + share);
        lo += share;
    }
}

/* Sends a transfer along a tree: the messages of its roots now, those of the others when they have it. */
static void send_tree(Sending *sending, const Transfer *transfer, const Job *job)
{
    Planner *planner = sending->planner;
    int count = job->devices.count, *degree = arena_array(planner->arena, int, count), *parent = arena_array(planner->arena, int, count),
        *depth = arena_array(planner->arena, int, count);
    Transfer *shares = arena_array(planner->arena, Transfer, count);
    for (int i = 0; i < count; i++)
        degree[i] = (int)job->units[i];
    tree_arrange(planner, job->first, count, degree, parent, depth);
    for (int i = job->first; i < count; i++)
        array_push(planner->arena, &shares[parent[i]].receivers, job->devices.at[i]);
    for (int i = 0; i < count; i++) {
        if (!degree[i])
            continue;
        shares[i].segment = transfer->segment;
        if (i < job->first) {
            for (int k = 0; k < degree[i]; k++)
                step_send(planner, sending->step, job->devices.at[i], shares[i].receivers.at[k], transfer->segment);
            continue;
        }
        shares[i].segment.origin = ORIGIN_TO;
        shares[i].segment.source = 0;
        array_push(planner->arena, &shares[i].holders, job->devices.at[i]);
        pass_on(sending, depth[i] - 1, &shares[i]);
    }
}

/* Sends values from their only holders. */
static void send_shares(Sending *sending, const Transfers *shares)
{
    for (int g = 0; g < shares->count; g++)
        for (int n = 0; n < shares->at[g].receivers.count; n++)
            step_send(sending->planner, sending->step, shares->at[g].holders.at[0], shares->at[g].receivers.at[n], shares->at[g].segment);
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
static Devices mutual_devices(Planner *planner, const Messages *messages, const int *order, int count, Index *index)
{
    Devices devices = {0};
    int size = 2;
    while (size * (size - 1) < count)
        size++;
    if (size < 3 || size * (size - 1) != count || !is_countable(planner->plan, messages, order, count))
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
            array_push(planner->arena, &devices, device);
        }
    qsort(devices.at, (size_t)devices.count, sizeof *devices.at, compare_devices);
    return devices;
}

/* The sender and receiver of each message. */
static Devices *message_ends(Planner *planner, const Messages *messages)
{
    Devices *sets = arena_array(planner->arena, Devices, messages->count);
    int *ends = arena_array(planner->arena, int, 2 * messages->count);
    for (int i = 0; i < messages->count; i++) {
        ends[2 * i] = messages->at[i].sender;
        ends[2 * i + 1] = messages->at[i].receiver;
        sets[i] = (Devices){.at = ends + 2 * i, .count = 2};
    }
    return sets;
}

/* Ends an exchange: takes out the devices that all send to each other, three or more, as all-to-alls. */
static void end_exchange(Planner *planner, int exchange)
{
    step_close(planner, exchange);
    Messages messages = planner->plan->steps.at[exchange].messages, rest = {0};
    int components, *component = connect_sets(planner, message_ends(planner, &messages), NULL, messages.count, &components);
    int *begin = arena_array(planner->arena, int, components + 1),
        *order = sort_by_component(planner, component, messages.count, components, begin);
    Index *index = index_create(planner);
    for (int c = 0; c < components; c++) {
        Devices devices = mutual_devices(planner, &messages, order + begin[c], begin[c + 1] - begin[c], index);
        Messages *target = &rest;
        if (devices.count) {
            Step *step = plan_step(planner, HT_ALL_TO_ALL);
            step->group = devices;
            target = &step->messages;
        }
        for (int i = begin[c]; i < begin[c + 1]; i++)
            array_push(planner->arena, target, messages.at[order[i]]);
    }
    planner->plan->steps.at[exchange].messages = rest;
}

/* ---- all together ---- */

static void begin_exchange(Sending *sending)
{
    plan_step(sending->planner, HT_EXCHANGE);
    sending->step = sending->planner->plan->steps.count - 1;
}

void routes_send(Planner *planner, const Routes *routes, const Jobs *jobs)
{
    Sending sending = {.planner = planner};
    if (!routes->count)
        return;
    begin_exchange(&sending);
    for (int r = 0; r < routes->count; r++) {
        const Route *route = &routes->at[r];
        (route->tree ? send_tree : send_spread)(&sending, &route->transfer, &jobs->at[route->job]);
    }
    end_exchange(planner, sending.step);
    for (int round = 0; round < sending.later.count; round++) {
        Transfers rest = plan_gather(planner, &sending.later.at[round], false);
        begin_exchange(&sending);
        send_shares(&sending, &rest);
        end_exchange(planner, sending.step);
    }
}
