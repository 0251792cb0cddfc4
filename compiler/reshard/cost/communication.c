/* Counts a plan's bytes, and prices its steps by latency and bandwidth. resources.c adds
 * measurements and shared processors; cluster/communication_seconds.c has formulas. */
#include "reshard/cost/communication.h"

#include <string.h>

/* Adds the bytes that a device receives and sends; a count stops at INT64_MAX. */
static void count_moved(Plan *plan, int device, int64_t received, int64_t sent) {
    int slot = plan_slot(plan, device);
    if (__builtin_add_overflow(plan->received[slot], received, &plan->received[slot]))
        plan->received[slot] = INT64_MAX;
    if (__builtin_add_overflow(plan->sent[slot], sent, &plan->sent[slot]))
        plan->sent[slot] = INT64_MAX;
}

/* Returns the bytes of share i if `total` bytes are divided into n shares of whole elements. */
static int64_t even_share(__int128 total, int element, int i, int n) {
    __int128 count = total / element;
    return (int64_t)(count * (i + 1) / n - count * i / n) * element;
}

/* Adds the bytes that the members of a collective receive and send in rings and chains. */
static void count_collective(Plan *plan, const Step *step) {
    int n = step->group.count, parts = step_part_count(step),
        element = segments_element(plan, step->parts, parts);
    int64_t bytes = 0;
    for (int i = 0; i < parts; i++) bytes += segments_bytes(plan, &step->parts[i]);
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

static void count_step(Plan *plan, const Step *step) {
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        count_moved(plan, message->sender, 0, message->bytes);
        count_moved(plan, message->receiver, message->bytes, 0);
    }
    if (step->verb != HT_ALL_TO_ALL && step->verb != HT_EXCHANGE) count_collective(plan, step);
}

void count_moves(PlanBuilder *planner) {
    size_t size = sizeof(int64_t) * (size_t)planner->plan->device_count;
    memset(planner->plan->received, 0, size);
    memset(planner->plan->sent, 0, size);
    for (int s = planner->first; s < planner->plan->steps.count; s++)
        count_step(planner->plan, &planner->plan->steps.at[s]);
}

Link group_link(const Plan *plan, const Devices *group) {
    Link slowest = cluster_link(plan->cluster, group->at[0], group->at[group->count - 1]);
    for (int i = 1; i < group->count; i++) {
        Link link = cluster_link(plan->cluster, group->at[i - 1], group->at[i]);
        slowest.latency = link.latency > slowest.latency ? link.latency : slowest.latency;
        slowest.bandwidth = link.bandwidth < slowest.bandwidth ? link.bandwidth : slowest.bandwidth;
    }
    return slowest;
}

double step_bytes(const Plan *plan, const Step *step) {
    double bytes = 0;
    for (int i = 0; i < step_part_count(step); i++)
        bytes += (double)segments_bytes(plan, &step->parts[i]);
    for (int i = 0; i < step->messages.count; i++) bytes += (double)step->messages.at[i].bytes;
    return bytes;
}

void load_uplinks(const Plan *plan, const Step *step, const int *devices, UplinkLoads *loads) {
    for (int i = 0; i < step->messages.count; i++)
        uplink_loads_message(loads, devices[plan_slot(plan, step->messages.at[i].sender)],
                             devices[plan_slot(plan, step->messages.at[i].receiver)],
                             (double)step->messages.at[i].bytes);
    if (step->verb == HT_EXCHANGE || step->verb == HT_ALL_TO_ALL) return;
    Arena *scratch = arena_create();
    int *group = arena_array(scratch, int, step->group.count + 1);
    for (int i = 0; i < step->group.count; i++)
        group[i] = devices[plan_slot(plan, step->group.at[i])];
    uplink_loads_collective(loads, step->verb, group, step->group.count, step_bytes(plan, step));
    arena_destroy(scratch);
}

static double collective_seconds(const Plan *plan, const Step *step) {
    Link link = group_link(plan, &step->group);
    return verb_seconds(step->verb, step->group.count, step_bytes(plan, step), &link);
}

/* Adds to `sending` and `receiving`, by slot, the seconds of the messages of a step. */
static void add_messages(const Plan *plan, const Step *step, double *sending, double *receiving) {
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        Link link = cluster_link(plan->cluster, message->sender, message->receiver);
        double seconds = link_seconds(&link, (double)message->bytes);
        sending[plan_slot(plan, message->sender)] += seconds;
        receiving[plan_slot(plan, message->receiver)] += seconds;
    }
}

static void add_collective_seconds(const Plan *plan, const Step *step, double *busy) {
    double seconds = collective_seconds(plan, step);
    for (int i = 0; i < step->group.count; i++) busy[plan_slot(plan, step->group.at[i])] += seconds;
}

static double longest_of(const double *seconds, int count) {
    double longest = 0;
    for (int i = 0; i < count; i++) longest = seconds[i] > longest ? seconds[i] : longest;
    return longest;
}

/* Returns whether two steps are priced as simultaneous: they have the same stage and the same verb,
 * and are not exchanges. */
static bool go_together(const Step *a, const Step *b) {
    return a->verb == b->verb && a->stage == b->stage && a->verb != HT_EXCHANGE;
}

double price_steps(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    Resources *resources = plan->cluster ? resources_create(planner) : NULL;
    int count = plan->device_count;
    size_t size = sizeof(double) * (size_t)count;
    double *busy = arena_array(planner->arena, double, count),
           *receiving = arena_array(planner->arena, double, count), total = 0;
    for (int s = 0, end; s < plan->steps.count; s = end) {
        memset(busy, 0, size);
        memset(receiving, 0, size);
        for (end = s; end == s || (end < plan->steps.count &&
                                   go_together(&plan->steps.at[s], &plan->steps.at[end]));
             end++) {
            const Step *step = &plan->steps.at[end];
            if (step->verb == HT_EXCHANGE || step->verb == HT_ALL_TO_ALL)
                add_messages(plan, step, busy, receiving);
            else add_collective_seconds(plan, step, busy);
        }
        double sent = longest_of(busy, count), received = longest_of(receiving, count);
        double seconds = sent > received ? sent : received;
        double until = resources ? resources_take(resources, s, end, seconds) : total + seconds;
        for (int i = s; i < end; i++) {
            plan->steps.at[i].together = s;
            plan->steps.at[i].seconds = i == s ? until - total : 0;
        }
        total = until;
    }
    return total;
}
