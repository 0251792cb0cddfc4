/* Steps of a plan, and what all that make them have in common. */
#include "reshard/loads.h"

#include <string.h>

/* ---- steps ---- */

Step *plan_step(Planner *planner, ht_verb verb)
{
    array_push(planner->arena, &planner->plan->steps, (Step){.verb = verb, .stage = planner->stage});
    return &planner->plan->steps.at[planner->plan->steps.count - 1];
}

void step_send(Planner *planner, int step, int sender, int receiver, Segment segment)
{
    while (planner->outboxes.count <= step)
        array_push(planner->arena, &planner->outboxes, (Packets){0});
    array_push(planner->arena, &planner->outboxes.at[step], (Packet){sender, receiver, segment});
}

/* Sorts packets by the slots of their senders or receivers; those of one device stay in their order. */
static void sort_packets(Planner *planner, const Packet *packets, int count, bool by_receiver, Packet *sorted)
{
    const Plan *plan = planner->plan;
    int *next = arena_array(planner->arena, int, plan->device_count + 1);
    for (int i = 0; i < count; i++)
        next[plan_slot(plan, by_receiver ? packets[i].receiver : packets[i].sender) + 1]++;
    for (int d = 0; d < plan->device_count; d++)
        next[d + 1] += next[d];
    for (int i = 0; i < count; i++)
        sorted[next[plan_slot(plan, by_receiver ? packets[i].receiver : packets[i].sender)]++] = packets[i];
}

/* Appends the message of packets that go the same way; their segments go to `segments`. */
static void add_message(Planner *planner, Messages *messages, const Packet *packets, int count, Segment *segments)
{
    Message message = {.sender = packets->sender, .receiver = packets->receiver, .segments = {segments, count, count}};
    for (int i = 0; i < count; i++)
        segments[i] = packets[i].segment;
    message.bytes = segments_bytes(planner->plan, &message.segments);
    array_push(planner->arena, messages, message);
}

void step_close(Planner *planner, int step)
{
    if (step >= planner->outboxes.count || !planner->outboxes.at[step].count)
        return;
    Messages *messages = &planner->plan->steps.at[step].messages;
    Packet *packets = planner->outboxes.at[step].at;
    int count = planner->outboxes.at[step].count;
    Packet *sorted = arena_array(planner->arena, Packet, count);
    Segment *segments = arena_array(planner->arena, Segment, count);
    sort_packets(planner, packets, count, true, sorted);
    sort_packets(planner, sorted, count, false, packets);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && packets[end].sender == packets[i].sender && packets[end].receiver == packets[i].receiver;)
            end++;
        add_message(planner, messages, packets + i, end - i, segments + i);
    }
    planner->outboxes.at[step].count = 0;
}

void plan_drop_empty(Planner *planner)
{
    Plan *plan = planner->plan;
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

Devices join_devices(Planner *planner, const Devices *a, const Devices *b)
{
    int count = a->count + (b ? b->count : 0);
    Devices joined = {.at = arena_array(planner->arena, int, count), .count = count, .capacity = count};
    memcpy(joined.at, a->at, sizeof(int) * (size_t)a->count);
    if (b && b->count)
        memcpy(joined.at + a->count, b->at, sizeof(int) * (size_t)b->count);
    return joined;
}

bool may_collect(const Planner *planner, const Devices *devices)
{
    for (int i = 0; i < devices->count; i++)
        if (planner->avoid[plan_slot(planner->plan, devices->at[i])])
            return false;
    return true;
}
