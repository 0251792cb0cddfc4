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

/* What a device does in a batch of messages. */
typedef struct Traffic {
    double start; // when it and all that it exchanges messages with have come to it
    double sending, receiving;
} Traffic;

/* Lets the devices of a collective act together: it begins when the last of them has come to it. */
static void pass_collective(const Plan *plan, const Step *step, double *clock)
{
    double start = 0, seconds = collective_seconds(plan, step);
    for (int i = 0; i < step->group.count; i++) {
        double own = clock[plan_slot(plan, step->group.at[i])];
        start = own > start ? own : start;
    }
    for (int i = 0; i < step->group.count; i++)
        clock[plan_slot(plan, step->group.at[i])] = start + seconds;
}

static void join_traffic(Traffic *traffic, double clock) { traffic->start = clock > traffic->start ? clock : traffic->start; }

/* Lets devices exchange messages; each sends and receives at once, one message after another. */
static void pass_messages(Builder *builder, const Step *step, double *clock)
{
    const Plan *plan = builder->plan;
    Traffic *traffic = arena_array(builder->arena, Traffic, plan->device_count);
    for (int i = 0; i < step->messages.count; i++) {
        const Message *message = &step->messages.at[i];
        Link link = cluster_link(plan->cluster, message->sender, message->receiver);
        double seconds = link.latency + (double)message->bytes / link.bandwidth;
        int sender = plan_slot(plan, message->sender), receiver = plan_slot(plan, message->receiver);
        traffic[sender].sending += seconds;
        traffic[receiver].receiving += seconds;
        join_traffic(&traffic[sender], clock[receiver]);
        join_traffic(&traffic[receiver], clock[sender]);
    }
    for (int i = 0; i < plan->device_count; i++) {
        Traffic *own = &traffic[i];
        join_traffic(own, clock[i]);
        clock[i] = own->start + (own->sending > own->receiving ? own->sending : own->receiving);
    }
}

/* Each device makes its steps one after another; the plan is done when the last device is. */
double price_plan(Builder *builder)
{
    const Plan *plan = builder->plan;
    double *clock = arena_array(builder->arena, double, plan->device_count), last = 0;
    for (int s = 0; s < plan->steps.count; s++) {
        const Step *step = &plan->steps.at[s];
        if (step->parts)
            pass_collective(plan, step, clock);
        else
            pass_messages(builder, step, clock);
    }
    for (int i = 0; i < plan->device_count; i++)
        last = clock[i] > last ? clock[i] : last;
    return last;
}

double plan_seconds(const Plan *plan) { return plan->seconds; }
