/* Where devices stand in a plan, so that lowering one looks at nothing that others do. */
#ifndef RESHARD_SEATS_H
#define RESHARD_SEATS_H

#include "reshard/plan.h"

/* A step in which a device acts. */
typedef struct StepSeat {
    int step, position;    // in the group, -1: it is not there; 0 where there is none
    Array(int) messages;   // that it sends or receives, ascending
    Array(int) reductions; // that it makes
} StepSeat;

/* A copy or fill of which a device is a target, and whether it holds the source itself. */
typedef struct TaskSeat {
    int task;
    bool holder;
} TaskSeat;

/* What there is for one device, in the plan's order. */
typedef struct Seats {
    Array(StepSeat) steps;
    Array(TaskSeat) tasks;
} Seats;

/* The seats of a device with a slot; those of all devices are found when they are first asked for. */
const Seats *plan_seats(const Plan *plan, int slot);

#endif
