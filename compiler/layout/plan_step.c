/* Steps of a plan: collectives, messages, and the sets of devices that belong together. */
#include "layout/plan_build.h"

#include <string.h>
#include <uthash.h>

/* The message between two devices in a step. */
typedef struct PairKey {
    int step, sender, receiver;
} PairKey;
typedef struct Pair {
    PairKey key;
    int message;
    UT_hash_handle hh;
} Pair;

/* ---- sets of devices ---- */

static int find_root(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Joins the devices of each set; `parent` is by slot. */
static void join_sets(const Plan *plan, const Devices *sets, int count, int *parent)
{
    for (int s = 0; s < count; s++)
        for (int k = 1; k < sets[s].count; k++) {
            int a = find_root(parent, plan_slot(plan, sets[s].at[0])), b = find_root(parent, plan_slot(plan, sets[s].at[k]));
            parent[a > b ? a : b] = a > b ? b : a;
        }
}

/* Numbers the components of sets of one kind, from *count on. */
static void number_sets(const Plan *plan, const Devices *sets, int set_count, int *parent, int *number, int *component, int *count)
{
    for (int i = 0; i < plan->device_count; i++) {
        parent[i] = i;
        number[i] = 0;
    }
    join_sets(plan, sets, set_count, parent);
    for (int s = 0; s < set_count; s++) {
        int root = find_root(parent, plan_slot(plan, sets[s].at[0]));
        if (!number[root])
            number[root] = ++*count;
        component[s] = number[root] - 1;
    }
}

int *connect_sets(Builder *builder, const Devices *sets, const int *kinds, int count, int *component_count)
{
    int devices = builder->plan->device_count, *parent = arena_array(builder->arena, int, devices),
        *number = arena_array(builder->arena, int, devices), *component = arena_array(builder->arena, int, count);
    *component_count = 0;
    for (int s = 0, end; s < count; s = end) {
        for (end = s + 1; end < count && (!kinds || kinds[end] == kinds[s]);)
            end++;
        number_sets(builder->plan, sets + s, end - s, parent, number, component + s, component_count);
    }
    return component;
}

int *sort_by_component(Builder *builder, const int *component, int count, int components, int *begin)
{
    int *order = arena_array(builder->arena, int, count), *next = arena_array(builder->arena, int, components + 1);
    for (int i = 0; i < count; i++)
        begin[component[i] + 1]++;
    for (int c = 0; c < components; c++)
        next[c + 1] = begin[c + 1] += begin[c];
    next[0] = 0;
    for (int i = 0; i < count; i++)
        order[next[component[i]]++] = i;
    return order;
}

/* ---- steps ---- */

Step *plan_step(Builder *builder, ht_verb verb)
{
    array_push(builder->arena, &builder->plan->steps, (Step){.verb = verb});
    return &builder->plan->steps.at[builder->plan->steps.count - 1];
}

/* The group with its device at `root` in front, and that device's part. */
static void add_rooted(Builder *builder, const Devices *group, Segments *parts, int root, ht_verb verb)
{
    Step *step = plan_step(builder, verb);
    step->parts = arena_array(builder->arena, Segments, group->count);
    step->parts[0] = parts[root];
    array_push(builder->arena, &step->group, group->at[root]);
    for (int i = 0; i < group->count; i++)
        if (i != root)
            array_push(builder->arena, &step->group, group->at[i]);
}

void plan_collective(Builder *builder, Devices group, Segments *parts, int holders, ht_verb verb, ht_verb rooted)
{
    if (holders == 1 || !parts_countable(builder->plan, parts, group.count)) {
        for (int i = 0; i < holders; i++)
            add_rooted(builder, &group, parts, i, rooted);
        return;
    }
    Step *step = plan_step(builder, verb);
    step->group = group;
    step->parts = parts;
}

void step_send(Builder *builder, int step, int sender, int receiver, Segment segment)
{
    PairKey key = {step, sender, receiver};
    Pair *pair;
    Messages *messages = &builder->plan->steps.at[step].messages;
    HASH_FIND(hh, builder->pairs, &key, sizeof key, pair);
    if (!pair) {
        pair = arena_new(builder->arena, Pair);
        pair->key = key;
        pair->message = messages->count;
        array_push(builder->arena, messages, (Message){.sender = sender, .receiver = receiver});
        HASH_ADD(hh, builder->pairs, key, sizeof key, pair);
    }
    Message *message = &messages->at[pair->message];
    message->bytes += segment_bytes(builder->plan, &segment);
    array_push(builder->arena, &message->segments, segment);
}

void plan_drop_empty(Builder *builder)
{
    Plan *plan = builder->plan;
    int kept = 0;
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb != HT_EXCHANGE || plan->steps.at[s].messages.count || plan->steps.at[s].reductions.count)
            plan->steps.at[kept++] = plan->steps.at[s];
    plan->steps.count = kept;
    HASH_CLEAR(hh, builder->pairs);
}
