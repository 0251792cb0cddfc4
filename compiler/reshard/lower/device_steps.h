/* Where devices stand in a plan, so that lowering one looks at nothing that others do. */
#ifndef RESHARD_LOWER_DEVICE_STEPS_H
#define RESHARD_LOWER_DEVICE_STEPS_H

#include "reshard/plan.h"

/* A step in which a device acts. */
typedef struct StepPlace {
    int step, position;    // in the group, -1: it is not there; 0 where there is none
    Array(int) messages;   // that it sends or receives, ascending
    Array(int) reductions; // that it makes
} StepPlace;

/* A copy or fill of which a device is a target, and whether it holds the source itself. */
typedef struct TaskPlace {
    int task;
    bool holder;
} TaskPlace;

/* What there is for one device, in the plan's order. */
typedef struct DeviceSteps {
    Array(StepPlace) steps;
    Array(TaskPlace) tasks;
} DeviceSteps;

/* Returns the device_steps of a device with a slot; those of all devices are found when they are
 * first asked for. */
const DeviceSteps *plan_device_steps(const Plan *plan, int slot);

#endif
