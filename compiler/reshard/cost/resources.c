/* Prices steps on a measured cluster: corrections by size and number of ranks, and devices that
 * share a processor. */
#include "reshard/cost/communication.h"

#include "cluster/measured.h"

#include <math.h>
#include <string.h>

/* The processors of a plan's devices while its steps are priced. */
struct Resources {
    const Plan *plan;
    double touched; // bytes that all devices touch; for a finished plan, with its scratch space
    int *processor; // by slot: the first slot on the same processor, which stands for the processor
    double *ready;  // by processor: the time when it is free, in seconds from the first step
    double *sent, *received, *sums; // scratch, by slot
    UplinkLoads loads;              // scratch
};

static void clear(const Resources *resources, double *entries) {
    memset(entries, 0, sizeof *entries * (size_t)resources->plan->device_count);
}

/* Returns the largest sum of entries over a processor's devices; leaves all sums in `sums`. */
static double busiest_seat(const Resources *resources, const double *entries) {
    double *sums = resources->sums, busiest = 0;
    clear(resources, sums);
    for (int i = 0; i < resources->plan->device_count; i++) {
        double *sum = &sums[resources->processor[i]];
        *sum += entries[i];
        busiest = *sum > busiest ? *sum : busiest;
    }
    return busiest;
}

/* ---- measurements ---- */

/* Returns measured seconds / verb_seconds of `bytes`, which are clamped to the measured sizes. */
static double point_correction(const Measured *measured, const Link *link, double bytes) {
    double least = measured->seconds.at[0].size,
           most = measured->seconds.at[measured->seconds.count - 1].size;
    bytes = bytes < least ? least : bytes > most ? most : bytes;
    return curve_at(&measured->seconds, bytes) /
           verb_seconds(measured->verb, measured->ranks, bytes, link);
}

/* Returns the ratio of point_correction for a verb on `devices` devices, interpolated between
 * measured numbers of devices; 1 if nothing was measured. `bytes` are the bytes of the tensor, or
 * for messages the bytes that one device sends. */
static double correction(const Link *link, ht_verb verb, bool one_way, int devices, double bytes) {
    const Measured *below = link_measured(link, verb, one_way, devices, false),
                   *above = link_measured(link, verb, one_way, devices, true);
    bool messages = verb == HT_ALL_TO_ALL || verb == HT_EXCHANGE;
    if (!below) return 1;
    double low = point_correction(below, link, bytes * (messages ? below->ranks : 1));
    double high = point_correction(above, link, bytes * (messages ? above->ranks : 1));
    double part = above->ranks > below->ranks
                      ? (double)(devices - below->ranks) / (above->ranks - below->ranks)
                      : 0;
    return low * pow(high / low, part);
}

/* Returns the bytes that all devices of a group hold before a step of a verb, plus the bytes after
 * it. The unit is the bytes of the tensor, or of the messages. */
static double verb_touched(ht_verb verb, int ranks) {
    switch (verb) {
    case HT_ALL_REDUCE: return 2 * ranks;
    case HT_BROADCAST: return ranks;
    case HT_REDUCE_SCATTER:
    case HT_ALL_GATHER:
    case HT_REDUCE: return ranks + 1;
    default: return 2;
    }
}

/* Returns the ratio, at least 1, of a measurement's seconds to those measured for as many devices
 * with the least sharing of processors. */
static double longer(const Link *link, const Measured *measured, double bytes) {
    double size = bytes * (measured->verb == HT_ALL_TO_ALL ? measured->ranks : 1);
    return fmax(point_correction(measured, link, size) /
                    correction(link, measured->verb, false, measured->ranks, bytes),
                1);
}

/* Returns how many ranks shared a processor in a measurement; 1 if `measured` is NULL. */
static double share_of(const Measured *measured) { return measured ? measured_share(measured) : 1; }

/* Returns the ratio of a collective's seconds with its root alone on a processor to its seconds
 * with the root sharing a processor; 1 if not measured. The ratio may be below 1. `others` is the
 * number of other devices on one processor. */
static double lonely(const Link *link, ht_verb verb, double others, double bytes) {
    const Measured *alone = link_alone(link, verb);
    if (!alone || others <= 1) return 1;
    double ratio =
        point_correction(alone, link, bytes) / correction(link, verb, false, alone->ranks, bytes);
    return pow(ratio, log(others) / log(alone->ranks - 1));
}

/* Simultaneous collectives; all are treated as equal to the largest one. */
typedef struct Collectives {
    ht_verb verb;
    int ranks;
    double groups, share; // number of collectives; most busy devices on one processor
    double inner;         // most busy devices of one group on one processor
    double others;        // if the root has its own processor: most devices on another; else 0
    double turns;         // most collectives that one device does one after another
    double bytes;         // bytes of the largest collective
} Collectives;

/* Returns how many times longer simultaneous collectives take if their devices share processors.
 * Multiplies two measured factors, each to a power: for devices of one group, and for several
 * groups, on a processor. Without measurements of several groups, all groups count as one group. */
static double crowding(const Link *link, const Collectives *all, double bytes) {
    ht_verb verb = all->verb;
    int ranks = all->ranks;
    double groups = all->groups;
    const Measured *crowded = link_crowded(link, verb, ranks),
                   *in_turn = link_in_turn(link, verb, false);
    double alone = share_of(link_measured(link, verb, false, ranks, false));
    double shared = fmax(all->share / alone, 1),
           within = fmin(in_turn ? fmax(all->inner / alone, 1) : 1, shared);
    double turns = in_turn ? pow(longer(link, in_turn, bytes), log(within) / log(2)) : 1;
    if (groups > 1 && crowded) {
        double sharing = measured_share(crowded) /
                         share_of(link_measured(link, verb, false, crowded->ranks, false));
        double more =
            sharing > 1 ? log(shared / within) / log(sharing) : log(groups) / log(crowded->groups);
        return turns * pow(longer(link, crowded, bytes), more);
    }
    if (groups > 1 && !in_turn)
        return correction(link, verb, false, (int)(groups * ranks), bytes) /
               correction(link, verb, false, ranks, bytes);
    return in_turn ? pow(longer(link, in_turn, bytes), log(shared) / log(2)) : 1;
}

/* Returns the link with the least bandwidth that the steps [from, to) use. */
static Link steps_link(const Plan *plan, int from, int to) {
    Link slowest = {0};
    for (int s = from; s < to; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = 0; i < step->messages.count + (step->group.count > 0); i++) {
            const Message *message = i < step->messages.count ? &step->messages.at[i] : NULL;
            Link link = message ? cluster_link(plan->cluster, message->sender, message->receiver)
                                : group_link(plan, &step->group);
            if (slowest.bandwidth == 0 || link.bandwidth < slowest.bandwidth) slowest = link;
        }
    }
    return slowest;
}

/* ---- traffic ---- */

/* The traffic of simultaneous steps. */
typedef struct Traffic {
    Link link;      // the slowest link
    int devices;    // number of busy devices
    double bytes;   // the most bytes that any device sends, or that any device receives
    double other;   // bytes that the same device moves in the other direction
    double largest; // bytes of the largest message or collective
    double total;   // bytes of all messages or collectives
} Traffic;

static Traffic steps_traffic(const Resources *resources, int from, int to) {
    Traffic traffic = {0};
    const Plan *plan = resources->plan;
    double *sent = resources->sent, *received = resources->received;
    clear(resources, sent);
    clear(resources, received);
    for (int s = from; s < to; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = 0; i < step->messages.count; i++) {
            double bytes = (double)step->messages.at[i].bytes;
            sent[plan_slot(plan, step->messages.at[i].sender)] += bytes;
            received[plan_slot(plan, step->messages.at[i].receiver)] += bytes;
            traffic.largest = bytes > traffic.largest ? bytes : traffic.largest;
            traffic.total += bytes;
        }
        if (!step->messages.count) {
            traffic.total += step_bytes(plan, step);
            traffic.largest = fmax(traffic.largest, step_bytes(plan, step));
        }
        for (int i = 0; i < step->group.count && !step->messages.count; i++)
            sent[plan_slot(plan, step->group.at[i])] += step_bytes(plan, step);
    }
    for (int i = 0; i < plan->device_count; i++) {
        bool sends = sent[i] > received[i];
        double own = sends ? sent[i] : received[i], other = sends ? received[i] : sent[i];
        traffic.devices += own > 0;
        if (own > traffic.bytes || (own == traffic.bytes && other > traffic.other)) {
            traffic.bytes = own;
            traffic.other = other;
        }
    }
    return traffic;
}

/* ---- messages without measurements on a shared processor ---- */

/* Returns the seconds in which each of `devices` devices sends `bytes` in messages of at most
 * `largest` bytes. The slower of two rates counts: that of one message, start-up included, and
 * that of all messages together, which may exceed the caches. */
static double sending_seconds(const Link *link, bool one_way, int devices, double bytes,
                              double largest) {
    double plain = link_seconds(link, bytes),
           all = correction(link, HT_EXCHANGE, one_way, devices, bytes);
    double each = largest < bytes ? correction(link, HT_EXCHANGE, one_way, devices, largest) : all;
    return plain * (each > all ? each : all);
}

/* Returns the seconds of messages, the larger of two: those of the device with the most bytes, as
 * if it had one peer; those of all devices together on shared processors and memory. */
static double way_seconds(const Link *link, bool one_way, const Traffic *traffic) {
    double busiest = sending_seconds(link, one_way, 2, traffic->bytes, traffic->largest);
    double even = traffic->total / traffic->devices * (one_way ? 2 : 1);
    double shared =
        sending_seconds(link, one_way, traffic->devices,
                        even < traffic->bytes ? even : traffic->bytes, traffic->largest);
    return busiest > shared ? busiest : shared;
}

/* ---- messages with measurements on a shared processor ---- */

/* Measurements of messages between devices on one processor, and on different processors. */
typedef struct Exchanging {
    const Measured *turn_both, *turn_send; // on one processor: both directions, one direction
    const Measured *both, *send;           // on two processors: both directions, one direction
} Exchanging;

/* Writes a link's measurements of messages to *found. Returns whether all four exist. */
static bool find_exchanging(const Link *link, Exchanging *found) {
    *found =
        (Exchanging){link_in_turn(link, HT_EXCHANGE, false), link_in_turn(link, HT_EXCHANGE, true),
                     link_measured(link, HT_EXCHANGE, false, 2, false),
                     link_measured(link, HT_EXCHANGE, true, 2, false)};
    return found->turn_both && found->turn_send && found->both && found->send;
}

/* Returns the seconds of a message of `bytes`, as measured, while devices touch `touched` bytes.
 * The slower of two rates counts: that of such a message, and that of messages so large that the
 * measured ranks touch `touched` bytes, which may exceed the caches. */
static double message_seconds(const Link *link, const Measured *measured, double bytes,
                              double touched) {
    double whole = fmax(touched / (measured->one_way ? 2 : 2 * measured->ranks), bytes);
    double each =
        point_correction(measured, link, bytes * measured->ranks) * link_seconds(link, bytes);
    double all = point_correction(measured, link, whole * measured->ranks) *
                 (link->latency / whole + 1 / link->bandwidth) * bytes;
    return each > all ? each : all;
}

/* Returns the start-up seconds of an exchange on one device, without its messages. Two devices on
 * one processor spend these seconds twice, for messages in one direction and in both alike. The
 * difference of the two measurements is the start-up seconds. */
static double exchange_start(const Link *link, const Exchanging *exchanging) {
    double least = exchanging->turn_send->seconds.at[0].size / 2,
           both = message_seconds(link, exchanging->turn_both, least, 0) / 2;
    return fmin(fmax(message_seconds(link, exchanging->turn_send, least, 0) - both, 0), both);
}

/* Adds a message's seconds to its devices' `sent`, and sets their start-up seconds in `received`.
 * The sender's work is the seconds that sharing a processor adds, at most half of the total. */
static void add_work(const Resources *resources, const Message *message) {
    Exchanging exchanging;
    Link link = cluster_link(resources->plan->cluster, message->sender, message->receiver);
    if (!find_exchanging(&link, &exchanging) || !message->bytes) return;
    int sender = plan_slot(resources->plan, message->sender),
        receiver = plan_slot(resources->plan, message->receiver);
    double bytes = (double)message->bytes, touched = resources->touched,
           start = exchange_start(&link, &exchanging);
    double work = fmax(message_seconds(&link, exchanging.turn_both, bytes, touched) / 2 - start, 0);
    double longer = message_seconds(&link, exchanging.turn_send, bytes, touched) -
                    message_seconds(&link, exchanging.send, bytes, touched);
    double sending = fmin(fmax(longer, 0), work / 2);
    resources->sent[sender] += sending;
    resources->sent[receiver] += work - sending;
    resources->received[sender] = resources->received[receiver] = start;
}

/* Returns the seconds that the processor with the most work spends on the messages of steps. */
static double work_seconds(const Resources *resources, int from, int to) {
    clear(resources, resources->sent);
    clear(resources, resources->received);
    for (int s = from; s < to; s++)
        for (int i = 0; i < resources->plan->steps.at[s].messages.count; i++)
            add_work(resources, &resources->plan->steps.at[s].messages.at[i]);
    for (int i = 0; i < resources->plan->device_count; i++)
        resources->sent[i] += resources->received[i];
    return busiest_seat(resources, resources->sent);
}

/* Returns the seconds of simultaneous exchanges. The share of bytes that moves in both directions
 * and the share that moves in one direction have their own measurements. */
static double exchange_seconds(const Resources *resources, int from, int to,
                               const Traffic *traffic) {
    const Link *link = &traffic->link;
    Exchanging exchanging;
    double mutual = traffic->other / traffic->bytes, together, apart;
    bool in_turn = find_exchanging(link, &exchanging);
    if (in_turn) {
        together = message_seconds(link, exchanging.both, traffic->largest, resources->touched);
        apart = message_seconds(link, exchanging.send, traffic->largest, resources->touched);
    } else {
        together = way_seconds(link, false, traffic);
        apart = link_measured(link, HT_EXCHANGE, true, 2, false) ? way_seconds(link, true, traffic)
                                                                 : together;
    }
    double seconds = mutual * together + (1 - mutual) * apart;
    return in_turn ? fmax(seconds, work_seconds(resources, from, to)) : seconds;
}

/* ---- collectives ---- */

/* Returns the largest number of devices of collectives on one processor; each counts by the ratio
 * of its bytes to `bytes`. A broadcast's first and a reduce's last device are not counted. */
static double most_sharing(const Resources *resources, int from, int to, double bytes) {
    const Plan *plan = resources->plan;
    clear(resources, resources->received);
    for (int s = from; s < to; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = step->verb == HT_BROADCAST; i < step->group.count - (step->verb == HT_REDUCE);
             i++)
            resources->received[plan_slot(plan, step->group.at[i])] += step_bytes(plan, step);
    }
    return busiest_seat(resources, resources->received) / bytes;
}

/* Returns the largest number of devices, without a collective's root, on one processor; 0 if the
 * collective has no root, or if another device shares the root's processor. */
static double sharing_others(const Resources *resources, const Step *step) {
    const int *processor = resources->processor, *group = step->group.at;
    int root = processor[plan_slot(resources->plan, group[0])];
    if (step->verb != HT_BROADCAST && step->verb != HT_REDUCE) return 0;
    clear(resources, resources->received);
    for (int i = 1; i < step->group.count; i++)
        resources->received[plan_slot(resources->plan, group[i])] = 1;
    double others = busiest_seat(resources, resources->received);
    return resources->sums[root] > 0 ? 0 : others;
}

/* Returns the seconds of collectives of `bytes` bytes each. */
static double sized_seconds(const Link *link, const Collectives *all, double bytes) {
    return all->turns * verb_seconds(all->verb, all->ranks, bytes, link) *
           correction(link, all->verb, false, all->ranks, bytes) * crowding(link, all, bytes) *
           lonely(link, all->verb, all->others, bytes);
}

/* Returns the seconds of collectives: the larger of those measured for their bytes and those at the
 * rate measured for collectives that touch all bytes, which may exceed the caches. For this rate,
 * groups that share no processor count as one. */
static double touching_seconds(const Resources *resources, const Link *link,
                               const Collectives *all) {
    bool apart = all->inner > 1 && all->inner >= all->share;
    double whole =
        resources->touched / (verb_touched(all->verb, all->ranks) * (apart ? 1 : all->groups));
    double each = sized_seconds(link, all, all->bytes);
    return whole > all->bytes ? fmax(each, sized_seconds(link, all, whole) * all->bytes / whole)
                              : each;
}

/* Returns how many more seconds a device takes to combine a collective's elements than to add f32
 * elements with the same number of bytes. Links are measured with f32. */
static double longer_to_combine(const Plan *plan, const Step *step) {
    int device = step->group.at[0];
    const DeviceClass *class = cluster_class(plan->cluster, device);
    double seconds = 0;
    if (!class || class->combined[0][HT_F32] == 0) return 0;
    for (int i = 0; i < step_part_count(step); i++)
        for (int k = 0; k < step->parts[i].count; k++) {
            const Bucket *bucket = task_bucket(plan, step->parts[i].at[k].task);
            double rate =
                class->combined[bucket->reduction == HT_MAX][bucket->dtype] * bucket->element;
            double longer =
                rate > 0 ? 1 / rate - 1 / (class->combined[0][HT_F32] * ht_dtype_size(HT_F32)) : 0;
            seconds += fmax(longer, 0) * (double)segment_bytes(plan, &step->parts[i].at[k]);
        }
    return seconds / cluster_sharing(plan->cluster, device);
}

/* Returns longer_to_combine for all devices of the processor with the most devices. A reduce to one
 * device passes through each other device; a reduction for all devices is divided among them. */
static double combining_seconds(const Plan *plan, const Step *step, const Collectives *all) {
    double part = step->verb == HT_REDUCE ? 1 : (double)(all->ranks - 1) / all->ranks;
    return step_reduces(step) ? longer_to_combine(plan, step) * part * all->share * all->turns : 0;
}

/* Returns how many devices have a non-empty part in a collective. */
static int count_holders(const Step *step) {
    int holders = 0;
    for (int i = 0; i < step_part_count(step); i++) holders += step->parts[i].count > 0;
    return holders;
}

/* Returns the seconds of simultaneous collectives; `seconds` is their time by latency and
 * bandwidth. If only some devices have parts, the time is interpolated between a collective with
 * parts on all devices and a reduce or broadcast. */
static double collective_seconds(const Resources *resources, int from, int to,
                                 const Traffic *traffic, double seconds) {
    const Link *link = &traffic->link;
    const Step *step = &resources->plan->steps.at[from];
    int ranks = step->group.count;
    Collectives all = {
        step->verb,
        ranks,
        traffic->total / traffic->bytes,
        most_sharing(resources, from, to, traffic->bytes),
        most_sharing(resources, from, from + 1, fmax(step_bytes(resources->plan, step), 1)),
        to - from == 1 ? sharing_others(resources, step) : 0,
        seconds / verb_seconds(step->verb, ranks, traffic->largest, link),
        traffic->largest};
    double combining = combining_seconds(resources->plan, step, &all),
           divided = touching_seconds(resources, link, &all);
    if (step->verb != HT_REDUCE_SCATTER && step->verb != HT_ALL_GATHER) return divided + combining;
    all.verb = step->verb == HT_ALL_GATHER ? HT_BROADCAST : HT_REDUCE;
    double rooted = touching_seconds(resources, link, &all),
           part = (double)(ranks - count_holders(step)) / (ranks - 1);
    return divided * pow(rooted / divided, part) + combining;
}

/* Returns the seconds of all-to-alls as if all devices sent the same number of bytes, but at least
 * those of an exchange of the same messages. */
static double all_to_all_seconds(const Resources *resources, int from, int to,
                                 const Traffic *traffic) {
    const Link *link = &traffic->link;
    int ranks = resources->plan->steps.at[from].group.count;
    double mean = traffic->total / traffic->devices, groups = (double)traffic->devices / ranks;
    double even = verb_seconds(HT_ALL_TO_ALL, ranks, mean * ranks, link) *
                  correction(link, HT_ALL_TO_ALL, false, ranks, mean);
    double messages = exchange_seconds(resources, from, to, traffic);
    Collectives all = {
        .verb = HT_ALL_TO_ALL, .ranks = ranks, .groups = groups, .share = groups, .inner = 1};
    return fmax(even * crowding(link, &all, mean), messages);
}

/* Returns the seconds of the simultaneous steps [from, to); `seconds` if nothing was measured. */
static double measured_seconds(const Resources *resources, int from, int to, double seconds) {
    ht_verb verb = resources->plan->steps.at[from].verb;
    Link link = steps_link(resources->plan, from, to);
    if (!link_measured(&link, verb, false, 2, false)) return seconds;
    Traffic traffic = steps_traffic(resources, from, to);
    traffic.link = link;
    if (traffic.bytes == 0) return seconds;
    if (verb == HT_EXCHANGE) return exchange_seconds(resources, from, to, &traffic);
    if (verb == HT_ALL_TO_ALL) return all_to_all_seconds(resources, from, to, &traffic);
    return collective_seconds(resources, from, to, &traffic, seconds);
}

/* ---- uplinks ---- */

/* Returns the seconds of the busiest uplink in the steps [from, to), as if one message carried
 * all of its bytes; 0 if the steps pass no uplink. */
static double uplinks_seconds(Resources *resources, int from, int to) {
    const Plan *plan = resources->plan;
    UplinkLoads *loads = &resources->loads;
    double seconds = 0;
    if (!uplink_directions(plan->cluster)) return 0;
    uplink_loads_clear(loads);
    for (int s = from; s < to; s++) load_uplinks(plan, &plan->steps.at[s], plan->devices, loads);
    Link link = steps_link(plan, from, to);
    for (int i = 0; i < loads->passed_count; i++) {
        double bytes = loads->bytes[loads->passed[i]],
               rate = uplink_rate(plan->cluster, loads->passed[i]);
        seconds = fmax(seconds, (link.latency + bytes / rate) *
                                    correction(&link, HT_EXCHANGE, true, 2, bytes));
    }
    return seconds;
}

/* ---- processors ---- */

/* Returns, by slot, the first slot on the same processor. */
static int *find_processors(PlanBuilder *planner) {
    const Plan *plan = planner->plan;
    const Cluster *cluster = plan->cluster;
    int *seats = arena_array(planner->arena, int, plan->device_count),
        *first = arena_array(planner->arena, int, cluster->processor_count);
    for (int i = plan->device_count - 1; i >= 0; i--)
        if (plan->devices[i] < cluster->device_count)
            first[cluster->devices[plan->devices[i]].processor] = i;
    for (int i = 0; i < plan->device_count; i++)
        seats[i] = plan->devices[i] < cluster->device_count
                       ? first[cluster->devices[plan->devices[i]].processor]
                       : i;
    return seats;
}

Resources *resources_create(PlanBuilder *planner) {
    const Plan *plan = planner->plan;
    int count = plan->device_count;
    Resources *resources = arena_new(planner->arena, Resources);
    *resources = (Resources){.plan = plan,
                             .processor = find_processors(planner),
                             .ready = arena_array(planner->arena, double, count),
                             .sent = arena_array(planner->arena, double, count),
                             .received = arena_array(planner->arena, double, count),
                             .sums = arena_array(planner->arena, double, count),
                             .loads = uplink_loads(planner->arena, plan->cluster)};
    for (int i = 0; i < count; i++)
        resources->touched += plan_touched_bytes(plan, plan->devices[i]);
    for (int i = 0; i < count && plan->cache && plan->cluster->local.measured_count; i++)
        resources->touched += (double)plan_scratch_bytes(plan, plan->devices[i]);
    clear(resources, resources->ready);
    return resources;
}

/* Returns device `index` of the devices that act in a step; -1 if there are fewer devices. */
static int acting_device(const Step *step, int index) {
    if (index < step->group.count) return step->group.at[index];
    index -= step->group.count;
    if (index >= 2 * step->messages.count) return -1;
    const Message *message = &step->messages.at[index / 2];
    return index % 2 ? message->receiver : message->sender;
}

/* Returns the time when the processors of the steps' devices are all free. Sets the ready time of
 * these processors to `until` unless that is negative. */
static double seats_ready(Resources *resources, int from, int to, double until) {
    double latest = 0;
    for (int s = from; s < to; s++)
        for (int i = 0, device; (device = acting_device(&resources->plan->steps.at[s], i)) >= 0;
             i++) {
            double *ready =
                &resources->ready[resources->processor[plan_slot(resources->plan, device)]];
            latest = *ready > latest ? *ready : latest;
            *ready = until < 0 ? *ready : until;
        }
    return latest;
}

double resources_take(Resources *resources, int from, int to, double seconds) {
    double last = 0, begin = seats_ready(resources, from, to, -1);
    seats_ready(resources, from, to,
                begin + fmax(measured_seconds(resources, from, to, seconds),
                             uplinks_seconds(resources, from, to)));
    for (int i = 0; i < resources->plan->device_count; i++)
        last = resources->ready[i] > last ? resources->ready[i] : last;
    return last;
}
