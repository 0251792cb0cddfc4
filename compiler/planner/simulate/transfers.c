/* Finds which ports a conversion loads, and for how long. reshard/cost/communication.c has the
 * steps' own seconds. */
#include "planner/simulate/transfers.h"

#include "cost/cost.h"
#include "reshard/cost/communication.h"

#include <math.h>
#include <stdlib.h>

enum { OUT, IN, NUMBERS = 64 };

/* The seconds for which the messages of transfer `root` keep a direction of an uplink busy. */
typedef struct PassedUplink {
    int root, direction;
    double seconds;
} PassedUplink;

/* The state while a round is analysed. Arrays are by slot, a device's index in the plan. */
typedef struct Round {
    Arena *arena;
    const Cluster *cluster;
    const Plan *plan;
    const int *device_of;
    int from, to; // the round has the plan's steps [from, to)
    int kinds;    // number of link kinds
    int *joined;  // union-find parent; the root is a transfer's first slot; -1: the slot is not
                  // in the round
    double *latency[2];         // by direction and slot: seconds
    double *seconds;            // busy seconds of port (slot * kinds + kind) * 2 + direction
    Array(PassedUplink) passed; // sorted by root, then by direction
    double uplinks;             // seconds of the busiest uplink
} Round;

/* ---- joining slots into transfers ---- */

static int root_of(const Round *round, int slot) {
    while (round->joined[slot] != slot) slot = round->joined[slot];
    return slot;
}

static void join(Round *round, int a, int b) {
    round->joined[a] = round->joined[a] < 0 ? a : round->joined[a];
    round->joined[b] = round->joined[b] < 0 ? b : round->joined[b];
    a = root_of(round, a);
    b = root_of(round, b);
    round->joined[a > b ? a : b] = a > b ? b : a;
}

/* ---- loads of ports ---- */

static Link link_of(const Round *round, int a, int b, int *kind) {
    *kind = cluster_link_kind(round->cluster, round->device_of[a], round->device_of[b]);
    return cluster_link(round->cluster, round->device_of[a], round->device_of[b]);
}

/* Adds seconds of latency and of use to a slot's port (2 * kind of the link + direction). */
static void load(Round *round, int slot, int port, double latency, double seconds) {
    round->latency[port % 2][slot] += latency;
    round->seconds[slot * round->kinds * 2 + port] += seconds;
}

static void add_message(Round *round, const Message *message) {
    int kind, sender = plan_slot(round->plan, message->sender),
              receiver = plan_slot(round->plan, message->receiver);
    Link link = link_of(round, sender, receiver, &kind);
    join(round, sender, receiver);
    load(round, sender, 2 * kind + OUT, link.latency, (double)message->bytes / link.bandwidth);
    load(round, receiver, 2 * kind + IN, link.latency, (double)message->bytes / link.bandwidth);
}

/* Returns the latency of the slowest link of a ring of slots. */
static double ring_latency(const Round *round, const int *ring, int count) {
    double latency = 0;
    for (int i = 0, kind; i < count; i++)
        latency = fmax(latency, link_of(round, ring[i], ring[(i + 1) % count], &kind).latency);
    return latency;
}

static void load_collective(Round *round, const Step *step) {
    int count = step->group.count, *ring = arena_array(round->arena, int, count);
    for (int i = 0; i < count; i++) ring[i] = plan_slot(round->plan, step->group.at[i]);
    Link slow = {.latency = ring_latency(round, ring, count), .bandwidth = INFINITY};
    double latency = verb_seconds(step->verb, count, 0, &slow),
           bytes = step_bytes(round->plan, step);
    for (int i = 0, kind; i < count; i++) {
        int next = ring[(i + 1) % count];
        Link link = link_of(round, ring[i], next, &kind);
        link.latency = 0;
        join(round, ring[i], next);
        load(round, ring[i], 2 * kind + OUT, latency,
             verb_seconds(step->verb, count, bytes, &link));
        load(round, next, 2 * kind + IN, latency, verb_seconds(step->verb, count, bytes, &link));
    }
}

/* ---- loads of uplinks ---- */

/* Adds the loads `own` of a slot's transfer, in seconds, to `passed` and `all`; clears `own`. */
static void take_loads(Round *round, int slot, UplinkLoads *own, UplinkLoads *all) {
    for (int i = 0; i < own->passed_count; i++) {
        int direction = own->passed[i];
        double seconds = own->bytes[direction] / uplink_rate(round->cluster, direction);
        array_push(round->arena, &round->passed,
                   (PassedUplink){root_of(round, slot), direction, seconds});
        all->bytes[direction] += seconds;
        round->uplinks = fmax(round->uplinks, all->bytes[direction]);
    }
    uplink_loads_clear(own);
}

static int compare_passed(const void *a, const void *b) {
    const PassedUplink *x = a, *y = b;
    return x->root != y->root ? (x->root > y->root) - (x->root < y->root)
                              : (x->direction > y->direction) - (x->direction < y->direction);
}

/* Sets `passed` and `uplinks`; the slots of each transfer must have been joined before. */
static void load_round(Round *round) {
    if (!uplink_directions(round->cluster)) return;
    UplinkLoads own = uplink_loads(round->arena, round->cluster),
                all = uplink_loads(round->arena, round->cluster);
    for (int s = round->from; s < round->to; s++) {
        const Step *step = &round->plan->steps.at[s];
        int count = step->group.count, *devices = arena_array(round->arena, int, count);
        for (int i = 0; i < step->messages.count; i++) {
            const Message *message = &step->messages.at[i];
            int sender = plan_slot(round->plan, message->sender),
                receiver = plan_slot(round->plan, message->receiver);
            uplink_loads_message(&own, round->device_of[sender], round->device_of[receiver],
                                 (double)message->bytes);
            take_loads(round, sender, &own, &all);
        }
        for (int i = 0; i < count; i++)
            devices[i] = round->device_of[plan_slot(round->plan, step->group.at[i])];
        if (step->verb == HT_EXCHANGE || step->verb == HT_ALL_TO_ALL) continue;
        uplink_loads_collective(&own, step->verb, devices, count, step_bytes(round->plan, step));
        take_loads(round, plan_slot(round->plan, step->group.at[0]), &own, &all);
    }
    qsort(round->passed.at, (size_t)round->passed.count, sizeof *round->passed.at, compare_passed);
    // Join the entries of one transfer and direction.
    int count = 0;
    for (int i = 0; i < round->passed.count; i++) {
        PassedUplink *last = count ? &round->passed.at[count - 1] : NULL;
        if (last && !compare_passed(last, &round->passed.at[i]))
            last->seconds += round->passed.at[i].seconds;
        else round->passed.at[count++] = round->passed.at[i];
    }
    round->passed.count = count;
}

/* Returns the index of a transfer's first entry of `passed`. */
static int first_passed(const Round *round, int root) {
    int from = 0, to = round->passed.count;
    while (from < to) {
        int middle = (from + to) / 2;
        if (round->passed.at[middle].root < root) from = middle + 1;
        else to = middle;
    }
    return from;
}

/* Returns the seconds of the busiest uplink of transfer `root`; root -1: of all transfers. */
static double uplink_seconds(const Round *round, int root) {
    double seconds = root < 0 ? round->uplinks : 0;
    for (int i = first_passed(round, root);
         root >= 0 && i < round->passed.count && round->passed.at[i].root == root; i++)
        seconds = fmax(seconds, round->passed.at[i].seconds);
    return seconds;
}

static Round round_create(Arena *arena, const Cluster *cluster, const Plan *plan,
                          const int *device_of, int from) {
    int slots = plan->device_count;
    Round round = {.arena = arena,
                   .cluster = cluster,
                   .plan = plan,
                   .device_of = device_of,
                   .from = from,
                   .to = from};
    round.kinds = cluster_link_kinds(cluster);
    round.joined = arena_array(arena, int, slots);
    round.latency[OUT] = arena_array(arena, double, slots);
    round.latency[IN] = arena_array(arena, double, slots);
    round.seconds = arena_array(arena, double, slots *round.kinds * 2);
    for (int s = 0; s < slots; s++) round.joined[s] = -1;
    for (; round.to < plan->steps.count && plan->steps.at[round.to].together == from; round.to++) {
        const Step *step = &plan->steps.at[round.to];
        for (int i = 0; i < step->messages.count; i++) add_message(&round, &step->messages.at[i]);
        if (step->verb != HT_EXCHANGE && step->verb != HT_ALL_TO_ALL) load_collective(&round, step);
    }
    load_round(&round);
    return round;
}

/* ---- seconds of a transfer ---- */

/* Returns the busy seconds of a slot's ports in one direction. */
static double slot_seconds(const Round *round, int slot, int way) {
    double seconds = 0;
    for (int kind = 0; kind < round->kinds; kind++)
        seconds += round->seconds[(slot * round->kinds + kind) * 2 + way];
    return seconds;
}

/* Sets *all and *ports to the longest time of a slot of transfer `root`, or of an uplink that it
 * passes, with and without latencies; root -1: over all transfers. */
static void hop_seconds(const Round *round, int root, double *all, double *ports) {
    double latency = 0, uplink = uplink_seconds(round, root);
    *all = *ports = 0;
    for (int s = 0; s < round->plan->device_count; s++)
        for (int way = 0;
             way < 2 && round->joined[s] >= 0 && (root < 0 || root_of(round, s) == root); way++) {
            double seconds = slot_seconds(round, s, way);
            *ports = fmax(*ports, seconds);
            *all = fmax(*all, round->latency[way][s] + seconds);
            latency = fmax(latency, round->latency[way][s]);
        }
    *ports = fmax(*ports, uplink);
    if (uplink > 0) *all = fmax(*all, latency + uplink);
}

/* Returns the ratio of the plan's seconds of a round to those by latency and bandwidth. */
static double correction_of(const Round *round) {
    double all, ports, seconds = round->plan->steps.at[round->from].seconds;
    hop_seconds(round, -1, &all, &ports);
    return all > 0 ? seconds / all : 1;
}

/* ---- lists of transfers ---- */

static int compare_slots(const void *a, const void *b) {
    const int *x = a, *y = b;
    return (x[1] > y[1]) - (x[1] < y[1]);
}

/* Returns pairs of a slot of a transfer and its device, sorted by device; *count: their number. */
static int (*slots_of(Arena *arena, const Round *round, int root, int *count))[2] {
    int(*slots)[2] = arena_alloc(arena, sizeof *slots * (size_t)round->plan->device_count);
    *count = 0;
    for (int s = 0; s < round->plan->device_count; s++)
        if (round->joined[s] >= 0 && root_of(round, s) == root) {
            slots[*count][0] = s;
            slots[(*count)++][1] = round->device_of[s];
        }
    qsort(slots, (size_t)*count, sizeof *slots, compare_slots);
    return slots;
}

static SimulatedTransfer hop_of(Arena *arena, const Round *round, int number, int root,
                                double correction) {
    double all, most;
    int(*slots)[2], count;
    hop_seconds(round, root, &all, &most);
    slots = slots_of(round->arena, round, root, &count);
    SimulatedTransfer transfer = {.round = number,
                                  .verb = round->plan->steps.at[round->from].verb,
                                  .latency = (all - most) * correction,
                                  .work = most * correction};
    int *members = arena_array(arena, int, count);
    Array(TransferPort) ports = {0};
    for (int m = 0; m < count; m++) {
        members[m] = slots[m][1];
        for (int port = 0; port < round->kinds * 2; port++) {
            double seconds = round->seconds[slots[m][0] * round->kinds * 2 + port];
            if (seconds > 0) array_push(arena, &ports, (TransferPort){m, port, seconds / most});
        }
    }
    Array(TransferUplink) uplinks = {0};
    for (int i = first_passed(round, root);
         i < round->passed.count && round->passed.at[i].root == root; i++)
        array_push(
            arena, &uplinks,
            (TransferUplink){round->passed.at[i].direction, round->passed.at[i].seconds / most});
    transfer.uplinks = uplinks.at;
    transfer.uplink_count = uplinks.count;
    transfer.members = members;
    transfer.member_count = count;
    transfer.ports = ports.at;
    transfer.port_count = ports.count;
    return transfer;
}

static bool same_devices(const Plan *plan, const int *device_of) {
    for (int s = 0; s < plan->device_count; s++)
        if (plan->devices[s] != device_of[s]) return false;
    return true;
}

/* Returns whether no device receives more than NUMBERS bytes. */
static bool moves_numbers(const Plan *plan) {
    int64_t most = 0;
    for (int s = 0; s < plan->device_count; s++)
        most = plan->received[s] > most ? plan->received[s] : most;
    return plan->steps.count && most <= NUMBERS;
}

static SimulatedTransfer hop_of_all(Arena *arena, const Plan *plan, const int *device_of) {
    int(*slots)[2] = arena_alloc(arena, sizeof *slots * (size_t)plan->device_count),
    *members = arena_array(arena, int, plan->device_count);
    for (int s = 0; s < plan->device_count; s++) {
        slots[s][0] = s;
        slots[s][1] = device_of[s];
    }
    qsort(slots, (size_t)plan->device_count, sizeof *slots, compare_slots);
    for (int s = 0; s < plan->device_count; s++) members[s] = slots[s][1];
    return (SimulatedTransfer){.verb = plan->steps.at[0].verb,
                               .latency = plan_seconds(plan),
                               .member_count = plan->device_count,
                               .members = members};
}

/* Sets transfers->copiers, if anything is copied, to the devices in a transfer; to all devices if
 * the plan has no steps or moves only a few bytes (moves_numbers). */
static void find_movers(Arena *arena, const Plan *plan, const int *device_of, const bool *hopping,
                        SimulatedTransfers *transfers) {
    int *copiers = arena_array(arena, int, plan->device_count);
    for (int s = 0; s < plan->device_count && transfers->moving > 0; s++)
        if (hopping[s] || !plan->steps.count || moves_numbers(plan))
            copiers[transfers->copier_count++] = device_of[s];
    transfers->copiers = copiers;
}

SimulatedTransfers simulated_transfers_of(Arena *arena, const Cluster *cluster, const Plan *plan,
                                          const int *device_of) {
    Arena *scratch = arena_create();
    Array(SimulatedTransfer) list = {0};
    bool *hopping = arena_array(scratch, bool, plan->device_count);
    SimulatedTransfers transfers = {.moving = moving_seconds(cluster, plan)};
    if (moves_numbers(plan)) array_push(arena, &list, hop_of_all(arena, plan, device_of));
    for (int from = 0, number = 0, to; from < plan->steps.count && !moves_numbers(plan);
         from = to, number++) {
        Round planned = round_create(scratch, plan->cluster, plan, plan->devices, from);
        Round own = cluster == plan->cluster && same_devices(plan, device_of)
                        ? planned
                        : round_create(scratch, cluster, plan, device_of, from);
        double correction = correction_of(&planned);
        to = planned.to;
        for (int s = 0; s < plan->device_count; s++) {
            hopping[s] |= own.joined[s] >= 0;
            if (own.joined[s] == s)
                array_push(arena, &list, hop_of(arena, &own, number, s, correction));
        }
    }
    transfers.count = list.count;
    transfers.at = list.at;
    find_movers(arena, plan, device_of, hopping, &transfers);
    arena_destroy(scratch);
    return transfers;
}
