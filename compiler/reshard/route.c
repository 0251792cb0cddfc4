/* The order of a plan's steps: reductions, and then the values on their way to those that want them; all at once, or inside hosts and
 * across them in turn. */
#include "reshard/hosts.h"

#include <string.h>

/* A value that some already hold goes to the others that want it. */
static void add_copies(Builder *builder)
{
    Index *index = index_create(builder);
    for (int t = 0; t < builder->plan->tasks.count; t++) {
        const Task *task = &builder->plan->tasks.at[t];
        if (task->source_count != 1 || task->local)
            continue;
        Gift gift = {.segment = task_segment(builder->plan, t), .holders = task->sources[0]};
        index_devices(index, &gift.holders);
        for (int w = 0; w < task->wanted.count; w++)
            if (index_find(index, task->wanted.at[w]) < 0)
                array_push(builder->arena, &gift.needers, task->wanted.at[w]);
        if (gift.needers.count)
            array_push(builder->arena, &builder->gifts, gift);
    }
}

static Tasks reducing_tasks(Builder *builder)
{
    Tasks tasks = {0};
    for (int t = 0; t < builder->plan->tasks.count; t++)
        if (builder->plan->tasks.at[t].source_count > 1)
            array_push(builder->arena, &tasks, t);
    return tasks;
}

/* An even share of what is sent in all, by the steps so far and by these works and gifts. */
static int64_t all_sent(const Builder *builder, const Works *works, const Gifts *gifts)
{
    int64_t total = 0;
    for (int i = 0; i < builder->plan->device_count; i++)
        total += builder->sent[i];
    for (int w = 0; w < works->count; w++)
        total += work_load(&works->at[w]);
    for (int g = 0; g < gifts->count; g++)
        total += segment_bytes(builder->plan, &gifts->at[g].segment) * gifts->at[g].needers.count;
    return total;
}

/* Appends the steps that make what these tasks make and, if asked, those that then bring all gifts to those that need them. */
static void route(Builder *builder, const Tasks *tasks, bool deliver)
{
    Sums sums = {0};
    Works works = {0};
    Routes routes = {0};
    Gifts rest = {0};
    reduce_by_collectives(builder, tasks, &sums);
    Merges *merges = merges_plan(builder, &sums);
    if (deliver) {
        Gifts left = plan_gather(builder, &builder->gifts, true);
        rest = near_gifts(builder, &left);
    }
    plan_count(builder);
    merges_add(builder, merges, &works);
    int64_t cap = load_cap(builder->plan, all_sent(builder, &works, &rest));
    routes_add(builder, &rest, cap, &routes, &works);
    balance_works(builder, &works, cap, MANY_SWEEPS, builder->sent);
    merges_send(builder, merges, &works);
    routes_send(builder, &routes, &works);
}

/* The steps from here on depend on those so far, and their loads are balanced on their own. */
static void next_stage(Builder *builder, const Gifts *gifts)
{
    builder->stage++;
    builder->first = builder->plan->steps.count;
    builder->gifts = *gifts;
}

static void route_in_one_tier(Builder *builder)
{
    Tasks tasks = reducing_tasks(builder);
    add_copies(builder);
    route(builder, &tasks, true);
}

/* Reductions inside hosts and then across them; values across hosts, and then inside them. */
static void route_in_two_tiers(Builder *builder)
{
    Hosts *hosts = hosts_of(builder);
    Tasks tasks = reducing_tasks(builder), local = {0}, crossing = {0}, none = {0};
    Gifts handed = {0}, nothing = {0};
    tier_sums(hosts, &tasks, &local, &crossing, &handed);
    route(builder, &local, false);
    add_copies(builder);
    Gifts whole = builder->gifts;
    next_stage(builder, &nothing);
    route(builder, &crossing, false);
    Gifts sent = builder->gifts;
    tier_gifts(hosts, &whole, &sent, &handed);
    next_stage(builder, &sent);
    route(builder, &none, true);
    next_stage(builder, &handed);
    route(builder, &none, true);
}

void plan_route(Builder *builder)
{
    builder->stage = builder->first = 0;
    memset(&builder->gifts, 0, sizeof builder->gifts);
    memset(&builder->outboxes, 0, sizeof builder->outboxes);
    (builder->tiers ? route_in_two_tiers : route_in_one_tier)(builder);
    plan_drop_empty(builder);
    plan_fuse(builder);
    builder->first = 0;
    plan_count(builder);
}
