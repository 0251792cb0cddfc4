/* What a plan costs by the cluster's latency-bandwidth model. */
#include "cluster/cluster.h"
#include "reshard/planner.h"

#include <string.h>

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

/* A collective as a ring, or a tree where that has fewer rounds and nothing is divided. */
static double collective_seconds(const Plan *plan, const Step *step)
{
    Link link = group_link(plan, &step->group);
    int n = step->group.count, parts = step_part_count(step);
    double bytes = 0, rounds = n - 1, share = (double)(n - 1) / n;
    for (int i = 0; i < parts; i++)
        bytes += (double)segments_bytes(plan, &step->parts[i]);
    if (step->verb == HT_ALL_REDUCE)
        rounds *= 2, share *= 2;
    if (step->verb == HT_BROADCAST || step->verb == HT_REDUCE)
        share = 1;
    return rounds * link.latency + share * bytes / link.bandwidth;
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

static void add_collective(const Plan *plan, const Step *step, double *busy)
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

double price_plan(Planner *planner)
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
                add_collective(plan, step, busy);
        }
        double sent = longest_of(busy, count), received = longest_of(receiving, count);
        total += sent > received ? sent : received;
    }
    return total;
}

double plan_seconds(const Plan *plan) { return plan->seconds; }
