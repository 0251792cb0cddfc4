#include "reshard/price.h"

#include <math.h>
#include <string.h>

/* ---- bytes ---- */

/* Adds what a device moves; what would be more than INT64_MAX stays there. */
static void count_moved(Plan *plan, int device, int64_t received, int64_t sent)
{
    int slot = plan_slot(plan, device);
    if (__builtin_add_overflow(plan->received[slot], received, &plan->received[slot]))
        plan->received[slot] = INT64_MAX;
    if (__builtin_add_overflow(plan->sent[slot], sent, &plan->sent[slot]))
        plan->sent[slot] = INT64_MAX;
}

/* Share i of `total` bytes in n parts, whole elements each. */
static int64_t even_share(__int128 total, int element, int i, int n)
{
    __int128 count = total / element;
    return (int64_t)(count * (i + 1) / n - count * i / n) * element;
}

/* What the members of a collective receive and send, as rings and chains move it. */
static void count_collective(Plan *plan, const Step *step)
{
    int n = step->group.count, parts = step_part_count(step), element = segments_element(plan, step->parts, parts);
    int64_t bytes = 0;
    for (int i = 0; i < parts; i++)
        bytes += segments_bytes(plan, &step->parts[i]);
    for (int i = 0; i < n; i++) {
        int64_t received = 0, sent = 0;
        if (step->verb == HT_ALL_REDUCE)
            received = sent = even_share((__int128)bytes * 2 * (n - 1), element, i, n);
        else if (step->verb == HT_REDUCE_SCATTER) {
            received = bytes - segments_bytes(plan, &step->parts[(i + n - 1) % n]);
            sent = bytes - segments_bytes(plan, &step->parts[i]);
        } else if (step->verb == HT_ALL_GATHER) {
            received = bytes - segments_bytes(plan, &step->parts[i]);
            sent = bytes - segments_bytes(plan, &step->parts[(i + 1) % n]);
        } else if (step->verb == HT_BROADCAST) {
            received = i ? bytes : 0;
            sent = i < n - 1 ? bytes : 0;
        } else {
            received = i < n - 1 ? bytes : 0;
            sent = i ? bytes : 0;
        }
        count_moved(plan, step->group.at[i], received, sent);
    }
}

static void count_step(Plan *plan, const Step *step)
{
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        count_moved(plan, message->sender, 0, message->bytes);
        count_moved(plan, message->receiver, message->bytes, 0);
    }
    if (step->verb != HT_ALL_TO_ALL && step->verb != HT_EXCHANGE)
        count_collective(plan, step);
}

void count_moves(Planner *planner)
{
    size_t size = sizeof(int64_t) * (size_t)planner->plan->device_count;
    memset(planner->plan->received, 0, size);
    memset(planner->plan->sent, 0, size);
    for (int s = planner->first; s < planner->plan->steps.count; s++)
        count_step(planner->plan, &planner->plan->steps.at[s]);
}

/* ---- seconds ---- */

Link group_link(const Plan *plan, const Devices *group)
{
    Link slowest = cluster_link(plan->cluster, group->at[0], group->at[group->count - 1]);
    for (int i = 1; i < group->count; i++) {
        Link link = cluster_link(plan->cluster, group->at[i - 1], group->at[i]);
        slowest.latency = link.latency > slowest.latency ? link.latency : slowest.latency;
        slowest.bandwidth = link.bandwidth < slowest.bandwidth ? link.bandwidth : slowest.bandwidth;
    }
    return slowest;
}

double step_bytes(const Plan *plan, const Step *step)
{
    double bytes = 0;
    for (int i = 0; i < step_part_count(step); i++)
        bytes += (double)segments_bytes(plan, &step->parts[i]);
    for (int i = 0; i < step->messages.count; i++)
        bytes += (double)step->messages.at[i].bytes;
    return bytes;
}

/* A collective of n devices as a ring, or a tree where that has fewer rounds and nothing is divided; of messages, as many from each to each
 * other, or for an exchange to one. */
static double verb_seconds(ht_verb verb, int n, double bytes, const Link *link)
{
    double rounds = n - 1, share = (double)(n - 1) / n;
    if (verb == HT_ALL_REDUCE)
        rounds *= 2, share *= 2;
    if (verb == HT_BROADCAST || verb == HT_REDUCE)
        share = 1;
    if (verb == HT_ALL_TO_ALL || verb == HT_EXCHANGE)
        share = 1.0 / n;
    return (verb == HT_EXCHANGE ? 1 : rounds) * link->latency + share * bytes / link->bandwidth;
}

static double collective_seconds(const Plan *plan, const Step *step)
{
    Link link = group_link(plan, &step->group);
    return verb_seconds(step->verb, step->group.count, step_bytes(plan, step), &link);
}

/* What was measured over what latency and bandwidth give, by the bytes of its curve. */
static double point_correction(const Measured *measured, const Link *link, double bytes)
{
    double least = measured->seconds.at[0].size, most = measured->seconds.at[measured->seconds.count - 1].size;
    bytes = bytes < least ? least : bytes > most ? most : bytes;
    return curve_at(&measured->seconds, bytes) / verb_seconds(measured->verb, measured->ranks, bytes, link);
}

/* The same of a verb on so many devices: a mean of the numbers of devices beside it that were measured, and 1 where none was. `bytes` are
 * the tensor's, or of messages those that a device sends. */
static double correction(const Link *link, ht_verb verb, bool one_way, int devices, double bytes)
{
    const Measured *below = link_measured(link, verb, one_way, devices, false), *above = link_measured(link, verb, one_way, devices, true);
    bool messages = verb == HT_ALL_TO_ALL || verb == HT_EXCHANGE;
    if (!below)
        return 1;
    double low = point_correction(below, link, bytes * (messages ? below->ranks : 1));
    double high = point_correction(above, link, bytes * (messages ? above->ranks : 1));
    double part = above->ranks > below->ranks ? (double)(devices - below->ranks) / (above->ranks - below->ranks) : 0;
    return low * pow(high / low, part);
}

/* How much longer collectives of `ranks` devices take in so many groups at once: a power of their number. Where none was measured, as if
 * all were one group. */
static double crowding(const Link *link, ht_verb verb, int ranks, double groups, double bytes)
{
    const Measured *crowded = link_crowded(link, verb, ranks);
    if (groups <= 1)
        return 1;
    if (!crowded)
        return correction(link, verb, false, (int)(groups * ranks), bytes) / correction(link, verb, false, ranks, bytes);
    double ratio = point_correction(crowded, link, bytes) / correction(link, verb, false, crowded->ranks, bytes);
    return ratio > 1 ? pow(ratio, log(groups) / log(crowded->groups)) : 1;
}

/* Adds to each device the time in which it sends and receives its messages; it does both at once. */
static void add_messages(const Plan *plan, const Step *step, double *sending, double *receiving)
{
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        Link link = cluster_link(plan->cluster, message->sender, message->receiver);
        double seconds = link.latency + (double)message->bytes / link.bandwidth;
        sending[plan_slot(plan, message->sender)] += seconds;
        receiving[plan_slot(plan, message->receiver)] += seconds;
    }
}

static void add_collective_seconds(const Plan *plan, const Step *step, double *busy)
{
    double seconds = collective_seconds(plan, step);
    for (int i = 0; i < step->group.count; i++)
        busy[plan_slot(plan, step->group.at[i])] += seconds;
}

static double longest_of(const double *seconds, int count)
{
    double longest = 0;
    for (int i = 0; i < count; i++)
        longest = seconds[i] > longest ? seconds[i] : longest;
    return longest;
}

/* Collectives of one kind and stage take place at once in groups that share no device, and one after another in those that do. */
static bool go_together(const Step *a, const Step *b) { return a->verb == b->verb && a->stage == b->stage && a->verb != HT_EXCHANGE; }

/* The slowest link of the steps [from, to). */
static Link steps_link(const Plan *plan, int from, int to)
{
    Link slowest = {0};
    for (int s = from; s < to; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = 0; i < step->messages.count + (step->group.count > 0); i++) {
            const Message *message = i < step->messages.count ? &step->messages.at[i] : NULL;
            Link link = message ? cluster_link(plan->cluster, message->sender, message->receiver) : group_link(plan, &step->group);
            if (slowest.bandwidth == 0 || link.bandwidth < slowest.bandwidth)
                slowest = link;
        }
    }
    return slowest;
}

/* What steps that take place at once move. */
typedef struct Traffic {
    int devices;    // that are busy
    double bytes;   // of the largest collective; of messages, sent or received by the busiest device
    double other;   // what that device moves the other way
    double largest; // message
    double total;   // of all messages
} Traffic;

/* `sent` and `received` are scratch of an entry a device. */
static Traffic steps_traffic(const Plan *plan, int from, int to, double *sent, double *received)
{
    Traffic traffic = {0};
    memset(sent, 0, sizeof *sent * (size_t)plan->device_count);
    memset(received, 0, sizeof *received * (size_t)plan->device_count);
    for (int s = from; s < to; s++) {
        const Step *step = &plan->steps.at[s];
        for (int i = 0; i < step->messages.count; i++) {
            double bytes = (double)step->messages.at[i].bytes;
            sent[plan_slot(plan, step->messages.at[i].sender)] += bytes;
            received[plan_slot(plan, step->messages.at[i].receiver)] += bytes;
            traffic.largest = bytes > traffic.largest ? bytes : traffic.largest;
            traffic.total += bytes;
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

/* Seconds in which devices send so many bytes each, in messages of `largest` at most; so many devices are measured to do that at once. At
 * the slower of the rates of such a message, which has a start of its own, and of all of them, which may be more than caches hold. */
static double sending_seconds(const Link *link, bool one_way, int devices, double bytes, double largest)
{
    double plain = link->latency + bytes / link->bandwidth, all = correction(link, HT_EXCHANGE, one_way, devices, bytes);
    double each = largest < bytes ? correction(link, HT_EXCHANGE, one_way, devices, largest) : all;
    return plain * (each > all ? each : all);
}

/* What the busiest device takes as if there were but one other, or if that is longer all devices together, when they share processors and
 * memory: as if all moved the same. */
static double way_seconds(const Link *link, bool one_way, const Traffic *traffic)
{
    double busiest = sending_seconds(link, one_way, 2, traffic->bytes, traffic->largest);
    double even = traffic->total / traffic->devices * (one_way ? 2 : 1);
    double shared = sending_seconds(link, one_way, traffic->devices, even < traffic->bytes ? even : traffic->bytes, traffic->largest);
    return busiest > shared ? busiest : shared;
}

/* The messages of an exchange go together, and wait once. What goes one way only was measured by itself. */
static double exchange_seconds(const Link *link, const Traffic *traffic)
{
    double mutual = traffic->other / traffic->bytes, together = way_seconds(link, false, traffic);
    double apart = link_measured(link, HT_EXCHANGE, true, 2, false) ? way_seconds(link, true, traffic) : together;
    return mutual * together + (1 - mutual) * apart;
}

/* What the steps [from, to), which take place at once, take where their link was measured; `seconds` by latency and bandwidth alone where
 * it was not. */
static double corrected_seconds(const Plan *plan, int from, int to, double seconds, double *sent, double *received)
{
    ht_verb verb = plan->steps.at[from].verb;
    Link link = steps_link(plan, from, to);
    if (!link_measured(&link, verb, false, 2, false))
        return seconds;
    Traffic traffic = steps_traffic(plan, from, to, sent, received);
    if (traffic.bytes == 0)
        return seconds;
    if (verb == HT_EXCHANGE)
        return exchange_seconds(&link, &traffic);
    int ranks = verb == HT_ALL_TO_ALL ? traffic.devices : plan->steps.at[from].group.count;
    seconds *= correction(&link, verb, false, ranks, traffic.bytes);
    return seconds * crowding(&link, verb, ranks, (double)traffic.devices / ranks, traffic.bytes);
}

double price_steps(Planner *planner)
{
    const Plan *plan = planner->plan;
    int count = plan->device_count;
    size_t size = sizeof(double) * (size_t)count;
    double *busy = arena_array(planner->arena, double, count), *receiving = arena_array(planner->arena, double, count), total = 0;
    for (int s = 0, end; s < plan->steps.count; s = end) {
        memset(busy, 0, size);
        memset(receiving, 0, size);
        for (end = s; end == s || (end < plan->steps.count && go_together(&plan->steps.at[s], &plan->steps.at[end])); end++) {
            const Step *step = &plan->steps.at[end];
            if (step->verb == HT_EXCHANGE || step->verb == HT_ALL_TO_ALL)
                add_messages(plan, step, busy, receiving);
            else
                add_collective_seconds(plan, step, busy);
        }
        double sent = longest_of(busy, count), received = longest_of(receiving, count);
        double seconds = sent > received ? sent : received;
        total += plan->cluster ? corrected_seconds(plan, s, end, seconds, busy, receiving) : seconds;
    }
    return total;
}
