/* Turns messages among devices that all send to each other into all-to-alls. */
#include "reshard/copy/copy.h"
#include "reshard/devices.h"
#include "reshard/plan_builder.h"

/* Returns whether an int can count the elements of an all-to-all of these messages. */
static bool is_countable(const Plan *plan, const Messages *messages, const int *order, int count) {
    int64_t bytes = 0;
    int element = 8;
    for (int i = 0; i < count; i++) {
        const Message *message = &messages->at[order[i]];
        int least = segments_element(plan, &message->segments, 1);
        bytes += message->bytes;
        element = least < element ? least : element;
    }
    return bytes / element <= INT32_MAX;
}

/* Returns the devices of a component of messages if an all-to-all can carry them: at least three
 * devices, each sends to all others, an int counts the elements. Else returns none. */
static Devices mutual_devices(PlanBuilder *planner, const Messages *messages, const int *order,
                              int count, Index *index) {
    Devices devices = {0};
    int size = 2;
    while (size * (size - 1) < count) size++;
    if (size < 3 || size * (size - 1) != count ||
        !is_countable(planner->plan, messages, order, count))
        return devices;
    index_clear(index);
    for (int i = 0; i < count; i++)
        for (int end = 0; end < 2; end++) {
            const Message *message = &messages->at[order[i]];
            int device = end ? message->receiver : message->sender;
            if (index_find(index, device) >= 0) continue;
            if (devices.count == size) return (Devices){0};
            index_set(index, device, devices.count);
            array_push(planner->arena, &devices, device);
        }
    sort_devices(devices.at, devices.count);
    return devices;
}

/* Returns, by message, a list of two devices: its sender and its receiver. */
static Devices *message_ends(PlanBuilder *planner, const Messages *messages) {
    Devices *sets = arena_array(planner->arena, Devices, messages->count);
    int *ends = arena_array(planner->arena, int, 2 * messages->count);
    for (int i = 0; i < messages->count; i++) {
        ends[2 * i] = messages->at[i].sender;
        ends[2 * i + 1] = messages->at[i].receiver;
        sets[i] = (Devices){.at = ends + 2 * i, .count = 2};
    }
    return sets;
}

void end_exchange(PlanBuilder *planner, int exchange) {
    close_messages(planner, exchange);
    if (planner->messages) return;
    Messages messages = planner->plan->steps.at[exchange].messages, rest = {0};
    Components components =
        connect_sets(planner, message_ends(planner, &messages), NULL, messages.count);
    Index *index = index_create(planner);
    for (int c = 0; c < components.count; c++) {
        const int *order = components.sets + components.begin[c];
        int count = components.begin[c + 1] - components.begin[c];
        Devices devices = mutual_devices(planner, &messages, order, count, index);
        Messages *target = &rest;
        if (devices.count) {
            Step *step = add_step(planner, HT_ALL_TO_ALL);
            step->group = devices;
            target = &step->messages;
        }
        for (int i = 0; i < count; i++) array_push(planner->arena, target, messages.at[order[i]]);
    }
    planner->plan->steps.at[exchange].messages = rest;
}
