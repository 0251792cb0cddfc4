/* Steps of a plan: messages, and the order in which all are made. */
#include "layout/plan_loads.h"

#include <string.h>

/* ---- steps ---- */

Step *plan_step(Builder *builder, ht_verb verb)
{
    array_push(builder->arena, &builder->plan->steps, (Step){.verb = verb});
    return &builder->plan->steps.at[builder->plan->steps.count - 1];
}

void step_send(Builder *builder, int step, int sender, int receiver, Segment segment)
{
    while (builder->outboxes.count <= step)
        array_push(builder->arena, &builder->outboxes, (Parcels){0});
    array_push(builder->arena, &builder->outboxes.at[step], (Parcel){sender, receiver, segment});
}

/* Sorts parcels by the slots of their senders or receivers; those of one device stay in their order. */
static void sort_parcels(Builder *builder, const Parcel *parcels, int count, bool by_receiver, Parcel *sorted)
{
    const Plan *plan = builder->plan;
    int *next = arena_array(builder->arena, int, plan->device_count + 1);
    for (int i = 0; i < count; i++)
        next[plan_slot(plan, by_receiver ? parcels[i].receiver : parcels[i].sender) + 1]++;
    for (int d = 0; d < plan->device_count; d++)
        next[d + 1] += next[d];
    for (int i = 0; i < count; i++)
        sorted[next[plan_slot(plan, by_receiver ? parcels[i].receiver : parcels[i].sender)]++] = parcels[i];
}

/* Appends the message of parcels that go the same way; their segments go to `segments`. */
static void add_message(Builder *builder, Messages *messages, const Parcel *parcels, int count, Segment *segments)
{
    Message message = {.sender = parcels->sender, .receiver = parcels->receiver, .segments = {segments, count, count}};
    for (int i = 0; i < count; i++)
        segments[i] = parcels[i].segment;
    message.bytes = segments_bytes(builder->plan, &message.segments);
    array_push(builder->arena, messages, message);
}

void step_close(Builder *builder, int step)
{
    if (step >= builder->outboxes.count || !builder->outboxes.at[step].count)
        return;
    Messages *messages = &builder->plan->steps.at[step].messages;
    Parcel *parcels = builder->outboxes.at[step].at;
    int count = builder->outboxes.at[step].count;
    Parcel *sorted = arena_array(builder->arena, Parcel, count);
    Segment *segments = arena_array(builder->arena, Segment, count);
    sort_parcels(builder, parcels, count, true, sorted);
    sort_parcels(builder, sorted, count, false, parcels);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && parcels[end].sender == parcels[i].sender && parcels[end].receiver == parcels[i].receiver;)
            end++;
        add_message(builder, messages, parcels + i, end - i, segments + i);
    }
    builder->outboxes.at[step].count = 0;
}

void plan_drop_empty(Builder *builder)
{
    Plan *plan = builder->plan;
    int kept = 0;
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb != HT_EXCHANGE || plan->steps.at[s].messages.count || plan->steps.at[s].reductions.count)
            plan->steps.at[kept++] = plan->steps.at[s];
    plan->steps.count = kept;
}

/* ---- what is common to all ---- */

Segment task_segment(const Plan *plan, int task)
{
    const Task *all = &plan->tasks.at[task];
    return (Segment){.task = task, .lo = all->lo, .hi = all->lo + all->volume};
}

int64_t fine_grain(const Plan *plan, const Segment *segment, int64_t cap)
{
    enum { PARTS = 4 }; // of the cap
    int64_t fine = cap / task_element(plan, segment->task) / PARTS;
    return fine > 1 ? fine : 1;
}

Devices join_devices(Builder *builder, const Devices *a, const Devices *b)
{
    int count = a->count + (b ? b->count : 0);
    Devices joined = {.at = arena_array(builder->arena, int, count), .count = count, .capacity = count};
    memcpy(joined.at, a->at, sizeof(int) * (size_t)a->count);
    if (b && b->count)
        memcpy(joined.at + a->count, b->at, sizeof(int) * (size_t)b->count);
    return joined;
}

bool may_collect(const Builder *builder, const Devices *devices)
{
    for (int i = 0; i < devices->count; i++)
        if (builder->avoid[plan_slot(builder->plan, devices->at[i])])
            return false;
    return true;
}

/* ---- the order of the steps ---- */

/* A value that some already hold goes to the others that want it. */
static void add_copies(Builder *builder)
{
    Index *index = index_create(builder);
    for (int t = 0; t < builder->plan->tasks.count; t++) {
        const Task *task = &builder->plan->tasks.at[t];
        if (task->source_count != 1)
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

void plan_route(Builder *builder)
{
    Sums sums = {0};
    Works works = {0};
    Routes routes = {0};
    reduce_by_collectives(builder, &sums);
    add_copies(builder);
    Merges *merges = merges_plan(builder, &sums);
    Gifts rest = plan_gather(builder, &builder->gifts, true);
    plan_count(builder);
    merges_add(builder, merges, &works);
    int64_t cap = load_cap(builder->plan, all_sent(builder, &works, &rest));
    routes_add(builder, &rest, cap, &routes, &works);
    balance_works(builder, &works, cap, MANY_SWEEPS, builder->sent);
    merges_send(builder, merges, &works);
    routes_send(builder, &routes, &works);
    plan_drop_empty(builder);
    plan_fuse(builder);
    plan_count(builder);
}
