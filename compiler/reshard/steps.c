/* Appends collectives and messages to a plan; where counts exceed an int, collectives are split. */
#include "reshard/plan_builder.h"
#include "reshard/devices.h"

Step *add_step(PlanBuilder *planner, ht_verb verb) {
    array_push(planner->arena, &planner->plan->steps,
               (Step){.verb = verb, .stage = planner->stage});
    return &planner->plan->steps.at[planner->plan->steps.count - 1];
}

/* Appends a broadcast or reduce of parts[root], with the device at index `root` first. */
static void add_rooted(PlanBuilder *planner, const Devices *group, const Segments *parts, int root,
                       ht_verb verb) {
    Step *step = add_step(planner, verb);
    step->parts = arena_array(planner->arena, Segments, group->count);
    step->parts[0] = parts[root];
    array_push(planner->arena, &step->group, group->at[root]);
    for (int i = 0; i < group->count; i++)
        if (i != root) array_push(planner->arena, &step->group, group->at[i]);
}

/* Returns whether an int can count the elements of a collective with these parts. */
static bool parts_countable(const Plan *plan, const Segments *parts, int count) {
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += segments_bytes(plan, &parts[i]);
    return bytes / segments_element(plan, parts, count) <= INT32_MAX;
}

static bool is_divided(ht_verb verb) { return verb == HT_REDUCE_SCATTER || verb == HT_ALL_GATHER; }

/* Appends a broadcast (for HT_ALL_GATHER) or a reduce for each non-empty part. */
static void add_each_rooted(PlanBuilder *planner, const Devices *group, const Segments *parts,
                            ht_verb verb) {
    for (int i = 0; i < group->count; i++)
        if (parts[i].count)
            add_rooted(planner, group, parts, i, verb == HT_ALL_GATHER ? HT_BROADCAST : HT_REDUCE);
}

void add_collective(PlanBuilder *planner, Devices group, Segments *parts, ht_verb verb) {
    int holders = 0;
    for (int i = 0; is_divided(verb) && i < group.count; i++) holders += parts[i].count > 0;
    if (holders == 1) {
        add_each_rooted(planner, &group, parts, verb);
        return;
    }
    Step *step = add_step(planner, verb);
    step->group = group;
    step->parts = parts;
}

void add_countable_collective(PlanBuilder *planner, const Devices *group, Segments *parts,
                              ht_verb verb) {
    if (is_divided(verb) && !parts_countable(planner->plan, parts, group->count))
        add_each_rooted(planner, group, parts, verb);
    else add_collective(planner, *group, parts, verb);
}

void send_segment(PlanBuilder *planner, int step, int sender, int receiver, Segment segment) {
    while (planner->outboxes.count <= step)
        array_push(planner->arena, &planner->outboxes, (Packets){0});
    array_push(planner->arena, &planner->outboxes.at[step], (Packet){sender, receiver, segment});
}

/* Writes packets to `sorted`, sorted stably by the slots of their senders or receivers. */
static void sort_packets(PlanBuilder *planner, const Packet *packets, int count, bool by_receiver,
                         Packet *sorted) {
    const Plan *plan = planner->plan;
    int *next = arena_array(planner->arena, int, plan->device_count + 1);
    for (int i = 0; i < count; i++)
        next[plan_slot(plan, by_receiver ? packets[i].receiver : packets[i].sender) + 1]++;
    for (int d = 0; d < plan->device_count; d++) next[d + 1] += next[d];
    for (int i = 0; i < count; i++)
        sorted[next[plan_slot(plan, by_receiver ? packets[i].receiver : packets[i].sender)]++] =
            packets[i];
}

/* Appends the message of packets of one sender and receiver. Its segments go to `segments`. */
static void add_message(PlanBuilder *planner, Messages *messages, const Packet *packets, int count,
                        Segment *segments) {
    Message message = {.sender = packets->sender,
                       .receiver = packets->receiver,
                       .segments = {segments, count, count}};
    for (int i = 0; i < count; i++) segments[i] = packets[i].segment;
    message.bytes = segments_bytes(planner->plan, &message.segments);
    array_push(planner->arena, messages, message);
}

void close_messages(PlanBuilder *planner, int step) {
    if (step >= planner->outboxes.count || !planner->outboxes.at[step].count) return;
    Messages *messages = &planner->plan->steps.at[step].messages;
    Packet *packets = planner->outboxes.at[step].at;
    int count = planner->outboxes.at[step].count;
    Packet *sorted = arena_array(planner->arena, Packet, count);
    Segment *segments = arena_array(planner->arena, Segment, count);
    sort_packets(planner, packets, count, true, sorted);
    sort_packets(planner, sorted, count, false, packets);
    for (int i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && packets[end].sender == packets[i].sender &&
                          packets[end].receiver == packets[i].receiver;)
            end++;
        add_message(planner, messages, packets + i, end - i, segments + i);
    }
    planner->outboxes.at[step].count = 0;
}

void drop_empty_steps(PlanBuilder *planner) {
    Plan *plan = planner->plan;
    int kept = 0;
    for (int s = 0; s < plan->steps.count; s++)
        if (plan->steps.at[s].verb != HT_EXCHANGE || plan->steps.at[s].messages.count ||
            plan->steps.at[s].reductions.count)
            plan->steps.at[kept++] = plan->steps.at[s];
    plan->steps.count = kept;
}

void push_transfer(PlanBuilder *planner, Transfers *list, Segment segment, Devices holders,
                   Devices receivers) {
    if (receivers.count && segment.lo < segment.hi)
        array_push(planner->arena, list, (Transfer){segment, holders, receivers});
}

void push_result(PlanBuilder *planner, Transfers *list, Segment segment, int holder,
                 const Devices *targets) {
    Devices holders = {0};
    array_push(planner->arena, &holders, holder);
    push_transfer(planner, list, segment, holders,
                  devices_without(planner->arena, targets, holder));
}
