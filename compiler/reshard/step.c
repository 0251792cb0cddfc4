/* Steps of a plan, and what all that make them have in common. */
#include "reshard/loads.h"

#include <string.h>

/* ---- steps ---- */

Step *plan_step(Builder *builder, ht_verb verb)
{
    array_push(builder->arena, &builder->plan->steps, (Step){.verb = verb, .stage = builder->stage});
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
    return (Segment){.task = task, .origin = all->origin, .lo = all->lo, .hi = all->lo + all->volume};
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
