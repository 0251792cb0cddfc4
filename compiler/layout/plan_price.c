/* What a plan costs by the cluster's latency-bandwidth model. */
#include "layout/cluster.h"
#include "layout/plan_build.h"

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

/* The time until the busiest device has sent and received its messages; it does both at once. */
static double messages_seconds(Builder *builder, const Step *step)
{
    const Plan *plan = builder->plan;
    double *sending = arena_array(builder->arena, double, plan->device_count),
           *receiving = arena_array(builder->arena, double, plan->device_count), most = 0;
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        Link link = cluster_link(plan->cluster, message->sender, message->receiver);
        double seconds = link.latency + (double)message->bytes / link.bandwidth;
        double *sender = &sending[plan_slot(plan, message->sender)], *receiver = &receiving[plan_slot(plan, message->receiver)];
        *sender += seconds;
        *receiver += seconds;
        most = *sender > most ? *sender : most;
        most = *receiver > most ? *receiver : most;
    }
    return most;
}

/* Steps of one kind in groups that share no device take place at once; the longest of them counts. */
double price_plan(Builder *builder)
{
    const Plan *plan = builder->plan;
    double total = 0;
    for (int s = 0; s < plan->steps.count;) {
        ht_verb verb = plan->steps.at[s].verb;
        double longest = 0;
        do {
            const Step *step = &plan->steps.at[s++];
            double seconds =
                step->group.count && step->verb != HT_ALL_TO_ALL ? collective_seconds(plan, step) : messages_seconds(builder, step);
            longest = seconds > longest ? seconds : longest;
        } while (s < plan->steps.count && plan->steps.at[s].verb == verb && verb != HT_EXCHANGE);
        total += longest;
    }
    return total;
}

double plan_seconds(const Plan *plan) { return plan->seconds; }
