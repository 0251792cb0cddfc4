/* The steps and tasks of each device, so that lowering one device does not visit what others do. */
#ifndef RESHARD_LOWER_DEVICE_STEPS_H
#define RESHARD_LOWER_DEVICE_STEPS_H

#include "reshard/plan.h"

/* A step in which a device takes part. */
typedef struct StepPlace {
    int step, position;    // position in the group, -1: not in it; 0 for steps without a group
    Array(int) messages;   // indices of the messages that it sends or receives, ascending
    Array(int) reductions; // indices of its reductions
} StepPlace;

/* A copy or fill whose target is the device; `holder`: it also has the source. */
typedef struct TaskPlace {
    int task;
    bool holder;
} TaskPlace;

/* What one device does, in the plan's order. */
typedef struct DeviceSteps {
    Array(StepPlace) steps;
    Array(TaskPlace) tasks;
} DeviceSteps;

/* Returns what the device with a slot does. The first call finds it for all devices. */
const DeviceSteps *plan_device_steps(const Plan *plan, int slot);

#endif
