#include "reshard/lower/device_steps.h"

static void seat_task(const Plan *plan, DeviceSteps *seats, int *stamp, int number) {
    const Task *task = &plan->tasks.at[number];
    if (task->source_count > 1 || task->local) return;
    for (int i = 0; task->source_count && i < task->sources[0].count; i++)
        stamp[plan_slot(plan, task->sources[0].at[i])] = number + 1;
    for (int i = 0; i < task->targets.count; i++) {
        int slot = plan_slot(plan, task->targets.at[i]);
        array_push(plan->arena, &seats[slot].tasks,
                   ((TaskPlace){number, stamp[slot] == number + 1}));
    }
}

/* The seat of a device in the step at hand, made when it is new. */
static StepPlace *seat_at(const Plan *plan, DeviceSteps *seats, int device, int step) {
    DeviceSteps *own = &seats[plan_slot(plan, device)];
    if (!own->steps.count || own->steps.at[own->steps.count - 1].step != step)
        array_push(
            plan->arena, &own->steps,
            ((StepPlace){.step = step, .position = plan->steps.at[step].group.count ? -1 : 0}));
    return &own->steps.at[own->steps.count - 1];
}

static void seat_step(const Plan *plan, DeviceSteps *seats, int number) {
    const Step *step = &plan->steps.at[number];
    for (int i = 0; i < step->group.count; i++)
        seat_at(plan, seats, step->group.at[i], number)->position = i;
    for (int m = 0; m < step->messages.count; m++) {
        const Message *message = &step->messages.at[m];
        array_push(plan->arena, &seat_at(plan, seats, message->sender, number)->messages, m);
        if (message->receiver != message->sender)
            array_push(plan->arena, &seat_at(plan, seats, message->receiver, number)->messages, m);
    }
    for (int r = 0; r < step->reductions.count; r++)
        array_push(plan->arena,
                   &seat_at(plan, seats, step->reductions.at[r].device, number)->reductions, r);
}

const DeviceSteps *plan_device_steps(const Plan *plan, int slot) {
    if (!*plan->seats) {
        DeviceSteps *seats = *plan->seats =
            arena_array(plan->arena, DeviceSteps, plan->device_count);
        int *stamp = arena_array(plan->arena, int, plan->device_count);
        for (int t = 0; t < plan->tasks.count; t++) seat_task(plan, seats, stamp, t);
        for (int s = 0; s < plan->steps.count; s++) seat_step(plan, seats, s);
    }
    return &(*plan->seats)[slot];
}
