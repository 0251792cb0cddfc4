/* Chooses the holders of a value that send it, and the receivers that pass it on.
 *
 * If holders would send too much, they send shares to some receivers, and each of these receivers
 * sends its share to all other receivers. If there are so many receivers that passing on one share
 * is too much for one device, a share travels along a tree. */
#include "reshard/load/balance_load.h"
#include "reshard/copy/copy.h"
#include "reshard/devices.h"
#include "reshard/plan_builder.h"

/* Returns how many elements of a transfer form a part, which is passed on as a whole: a small
 * fraction of the load cap. Smaller parts would need more messages, and not balance better. */
static int64_t part_width(const Plan *plan, const Transfer *transfer, int64_t unit, int64_t cap) {
    // PARTS: parts that all devices send together; LEAST_PARTS: fewest parts in one load cap
    enum { PARTS = 1536, LEAST_PARTS = 4 };
    int64_t volume = transfer->segment.hi - transfer->segment.lo,
            others = transfer->receivers.count - 1, parts = PARTS / plan->device_count,
            width = cap / (parts > LEAST_PARTS ? parts : LEAST_PARTS) / (unit * others);
    return width < 2 ? 1 : volume / ((volume + width - 1) / width);
}

/* Returns a transfer's job. Holders always send each element once, and the elements after the last
 * whole part to all receivers. A grain is one part that any device sends to all other receivers. */
static Job direct_job(PlanBuilder *planner, const Transfer *transfer, int64_t cap) {
    int64_t volume = transfer->segment.hi - transfer->segment.lo,
            others = transfer->receivers.count - 1,
            unit = task_element(planner->plan, transfer->segment.task);
    Job job = {.devices = devices_joined(planner->arena, &transfer->holders,
                                         others ? &transfer->receivers : &(Devices){0}),
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

/* Returns the job of a transfer along a tree: a grain brings the whole segment to one receiver. */
static Job tree_job(PlanBuilder *planner, const Transfer *transfer, int64_t cap) {
    Job job = direct_job(planner, transfer, cap);
    job.unit *= transfer->segment.hi - transfer->segment.lo;
    job.least = job.grain = 1;
    job.grains = transfer->receivers.count - 1;
    return job;
}

void routes_add(PlanBuilder *planner, const Transfers *transfers, int64_t cap, Routes *routes,
                Jobs *jobs) {
    for (int g = 0; g < transfers->count; g++) {
        Transfer transfer = transfers->at[g];
        int64_t fine = fine_grain(planner->plan, &transfer.segment, cap), end = transfer.segment.hi;
        bool tree = transfer.receivers.count - 1 > fine;
        for (; transfer.segment.lo < end; transfer.segment.lo = transfer.segment.hi) {
            transfer.segment.hi =
                tree && end - transfer.segment.lo > fine ? transfer.segment.lo + fine : end;
            int job =
                add_job(planner, jobs, (tree ? tree_job : direct_job)(planner, &transfer, cap));
            array_push(planner->arena, routes, (Route){transfer, tree, job});
        }
    }
}

/* The exchange that is being made, and the transfers of later exchanges. */
typedef struct Rounds {
    PlanBuilder *planner;
    int step;               // index of the current exchange in plan->steps
    Array(Transfers) later; // by delay: transfers to send `delay` + 1 exchanges after the first
} Rounds;

/* Registers that `device` passes a segment on to `receivers`, `delay` + 1 exchanges from now. */
static void pass_on(Rounds *rounds, int delay, Segment segment, int device, Devices receivers) {
    Arena *arena = rounds->planner->arena;
    Transfer transfer = {.segment = segment, .receivers = receivers};
    transfer.segment.origin = ORIGIN_TO;
    transfer.segment.source = 0;
    array_push(arena, &transfer.holders, device);
    while (rounds->later.count <= delay) array_push(arena, &rounds->later, (Transfers){0});
    array_push(arena, &rounds->later.at[delay], transfer);
}

/* Returns the part [lo, hi) of a transfer's segment, relative to the segment's beginning. */
static Segment part_of(const Transfer *transfer, int64_t lo, int64_t hi) {
    Segment part = transfer->segment;
    part.hi = part.lo + hi;
    part.lo += lo;
    return part;
}

/* A position in the holders of a transfer, which send their shares one after another. */
typedef struct Sender {
    Rounds *rounds;
    const Transfer *transfer;
    const int64_t *shares;
    int holder;
    int64_t sent; // elements sent so far of the current holder's share
} Sender;

static void send_part(Sender *sender, int device, int64_t lo, int64_t hi) {
    while (lo < hi) {
        while (sender->sent == sender->shares[sender->holder]) {
            sender->holder++;
            sender->sent = 0;
        }
        int64_t left = sender->shares[sender->holder] - sender->sent,
                width = hi - lo < left ? hi - lo : left;
        send_segment(sender->rounds->planner, sender->rounds->step,
                     sender->transfer->holders.at[sender->holder], device,
                     part_of(sender->transfer, lo, lo + width));
        sender->sent += width;
        lo += width;
    }
}

/* Sends a transfer: holders send its first part to all receivers, and a share of the rest to each
 * receiver, which passes its share on. */
static void send_direct(Rounds *rounds, const Transfer *transfer, const Job *job) {
    int64_t direct = transfer->segment.hi - transfer->segment.lo,
            others = transfer->receivers.count - 1;
    const int64_t *passed = job->units + job->first;
    for (int n = 0; n < job->devices.count - job->first; n++) direct -= passed[n] / others;
    Sender sender = {rounds, transfer, job->units, 0, 0};
    int64_t lo = direct;
    for (int n = 0; n < transfer->receivers.count; n++) {
        int device = transfer->receivers.at[n];
        int64_t share = job->devices.count > job->first ? passed[n] / others : 0;
        send_part(&sender, device, 0, direct);
        send_part(&sender, device, lo, lo + share);
        if (share)
            pass_on(rounds, 0, part_of(transfer, lo, lo + share), device,
                    devices_without(rounds->planner->arena, &transfer->receivers, device));
        lo += share;
    }
}

/* Sends a transfer along a tree: holders send now, a receiver after it has received the value. */
static void send_along_tree(Rounds *rounds, const Transfer *transfer, const Job *job) {
    PlanBuilder *planner = rounds->planner;
    int count = job->devices.count, *degree = arena_array(planner->arena, int, count);
    Devices *receivers = arena_array(planner->arena, Devices, count);
    for (int i = 0; i < count; i++) degree[i] = (int)job->units[i];
    Tree tree = tree_arrange(planner, job->first, count, degree);
    for (int i = job->first; i < count; i++)
        array_push(planner->arena, &receivers[tree.parent[i]], job->devices.at[i]);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < degree[i] && i < job->first; k++)
            send_segment(planner, rounds->step, job->devices.at[i], receivers[i].at[k],
                         transfer->segment);
        if (degree[i] && i >= job->first)
            pass_on(rounds, tree.depth[i] - 1, transfer->segment, job->devices.at[i], receivers[i]);
    }
}

static void begin_exchange(Rounds *rounds) {
    add_step(rounds->planner, HT_EXCHANGE);
    rounds->step = rounds->planner->plan->steps.count - 1;
}

/* Sends transfers that receivers pass on: by all-gathers, else by messages of their only holder. */
static void send_later(Rounds *rounds, const Transfers *later) {
    Transfers rest = gather_transfers(rounds->planner, later, false);
    begin_exchange(rounds);
    for (int g = 0; g < rest.count; g++)
        for (int n = 0; n < rest.at[g].receivers.count; n++)
            send_segment(rounds->planner, rounds->step, rest.at[g].holders.at[0],
                         rest.at[g].receivers.at[n], rest.at[g].segment);
    end_exchange(rounds->planner, rounds->step);
}

void routes_send(PlanBuilder *planner, const Routes *routes, const Jobs *jobs) {
    Rounds rounds = {.planner = planner};
    if (!routes->count) return;
    begin_exchange(&rounds);
    for (int r = 0; r < routes->count; r++) {
        const Route *route = &routes->at[r];
        (route->tree ? send_along_tree : send_direct)(&rounds, &route->transfer,
                                                      &jobs->at[route->job]);
    }
    end_exchange(planner, rounds.step);
    for (int round = 0; round < rounds.later.count; round++)
        send_later(&rounds, &rounds.later.at[round]);
}
