/* Finds the steps in which each device takes part. */
#include "reshard/lower/lower.h"

static void place_task(const Plan *plan, DeviceSteps *device_steps, int *stamp, int number) {
    const Task *task = &plan->tasks.at[number];
    if (task->source_count > 1 || task->local) return;
    for (int i = 0; task->source_count && i < task->sources[0].count; i++)
        stamp[plan_slot(plan, task->sources[0].at[i])] = number + 1;
    for (int i = 0; i < task->targets.count; i++) {
        int slot = plan_slot(plan, task->targets.at[i]);
        array_push(plan->arena, &device_steps[slot].tasks,
                   ((TaskPlace){number, stamp[slot] == number + 1}));
    }
}

/* Returns a device's entry for the current step; adds the entry if it does not exist. */
static StepPlace *place_at(const Plan *plan, DeviceSteps *device_steps, int device, int step) {
    DeviceSteps *own = &device_steps[plan_slot(plan, device)];
    if (!own->steps.count || own->steps.at[own->steps.count - 1].step != step)
        array_push(
            plan->arena, &own->steps,
            ((StepPlace){.step = step, .position = plan->steps.at[step].group.count ? -1 : 0}));
    return &own->steps.at[own->steps.count - 1];
}

static void place_step(const Plan *plan, DeviceSteps *device_steps, int number) {
    const Step *step = &plan->steps.at[number];
    for (int i = 0; i < step->group.count; i++)
        place_at(plan, device_steps, step->group.at[i], number)->position = i;
    for (int m = 0; m < step->messages.count; m++) {
        const Message *message = &step->messages.at[m];
        array_push(plan->arena, &place_at(plan, device_steps, message->sender, number)->messages,
                   m);
        if (message->receiver != message->sender)
            array_push(plan->arena,
                       &place_at(plan, device_steps, message->receiver, number)->messages, m);
    }
    for (int r = 0; r < step->reductions.count; r++)
        array_push(plan->arena,
                   &place_at(plan, device_steps, step->reductions.at[r].device, number)->reductions,
                   r);
}

const DeviceSteps *plan_device_steps(const Plan *plan, int slot) {
    if (!plan->cache->device_steps) {
        DeviceSteps *device_steps = plan->cache->device_steps =
            arena_array(plan->arena, DeviceSteps, plan->device_count);
        int *stamp = arena_array(plan->arena, int, plan->device_count);
        for (int t = 0; t < plan->tasks.count; t++) place_task(plan, device_steps, stamp, t);
        for (int s = 0; s < plan->steps.count; s++) place_step(plan, device_steps, s);
    }
    return &plan->cache->device_steps[slot];
}
