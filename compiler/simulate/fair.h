/* Fair speeds of tasks that share resources, found anew where something has changed: of those tasks alone that share resources, directly
 * or through others, with what changed. */
#ifndef SIMULATE_FAIR_H
#define SIMULATE_FAIR_H

#include "simulate/engine.h"

/* A task that uses a resource at present, in a list of these. */
typedef struct FairUser {
    int task, before, after; // -1: none
} FairUser;

/* Those that use a resource at present. */
typedef struct FairUsers {
    int first, count; // -1: there is none
    int seen;         // scratch: of these, in the set at hand
    double weight;    // of all shares together; FAIR_STALE: to be summed anew
} FairUsers;

#define FAIR_STALE (-1.0)

typedef struct Fair {
    const EngineProblem *problem;
    double *rate;     // by resource
    double *speed;    // by task; 0: it uses nothing at present
    FairUsers *users; // by resource
    FairUser *user;
    double *share;            // by entry of `user`: what its task uses of the resource, at speed 1
    int *first_use;           // by task: its first entry of `user`
    int *of_device, *device;  // the resources of device d are device[of_device[d]] to device[of_device[d + 1] - 1]
    int *disturbed, disturbed_count;
    int *tasks, *resources;   // scratch: of one set of tasks that share
    int *seen_task, *seen_resource, turn;
    double *left, *weight; // scratch by resource: of its rate, and shares of tasks that still grow
} Fair;

Fair fair_create(Arena *arena, const EngineProblem *problem);

/* A task begins or ends to use its resources. */
void fair_enter(Fair *fair, int task);
void fair_leave(Fair *fair, int task);

/* The rate of a resource, or of all of a device, has changed. */
void fair_disturb(Fair *fair, int resource);
void fair_disturb_device(Fair *fair, int device);

/* Finds the speeds of all that was disturbed since the last call: set_speed gets those that are others than before. */
void fair_settle(Fair *fair, double (*rate_of)(void *state, int resource), void (*set_speed)(void *state, int task, double speed), void *state);

#endif
