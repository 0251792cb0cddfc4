/* Fair speeds of tasks that share resources, found anew where something has changed: of those tasks
 * alone that share resources, directly or through others, with what changed. */
#ifndef PLANNER_SIMULATE_MAX_MIN_H
#define PLANNER_SIMULATE_MAX_MIN_H

#include "planner/simulate/engine.h"

/* A task that uses a resource at present, in a list of these. */
typedef struct MaxMinUser {
    int task, before, after; // -1: none
} MaxMinUser;

/* Those that use a resource at present. */
typedef struct MaxMinUsers {
    int first, count; // -1: there is none
    int seen;         // scratch: of these, in the set at hand
    double weight;    // of all shares together; FAIR_STALE: to be summed anew
} MaxMinUsers;

#define FAIR_STALE (-1.0)

typedef struct MaxMin {
    const EngineProblem *problem;
    double *rate;       // by resource
    double *speed;      // by task; 0: it uses nothing at present
    MaxMinUsers *users; // by resource
    MaxMinUser *user;
    double *share;           // by entry of `user`: what its task uses of the resource, at speed 1
    int *first_use;          // by task: its first entry of `user`
    int *of_device, *device; // the resources of device d are device[of_device[d]] to
                             // device[of_device[d + 1] - 1]
    int *disturbed, disturbed_count;
    int *tasks, *resources; // scratch: of one set of tasks that share
    int *seen_task, *seen_resource, turn;
    double *left, *weight; // scratch by resource: of its rate, and shares of tasks that still grow
} MaxMin;

MaxMin max_min_create(Arena *arena, const EngineProblem *problem);

/* A task begins or ends to use its resources. */
void max_min_enter(MaxMin *fair, int task);
void max_min_leave(MaxMin *fair, int task);

/* The rate of a resource, or of all of a device, has changed. */
void max_min_disturb(MaxMin *fair, int resource);
void max_min_disturb_device(MaxMin *fair, int device);

/* Finds the speeds of all that was disturbed since the last call: set_speed gets those that are
 * others than before. */
void max_min_settle(MaxMin *fair, double (*rate_of)(void *state, int resource),
                    void (*set_speed)(void *state, int task, double speed), void *state);

#endif
