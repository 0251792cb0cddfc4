/* Max-min fair speeds of tasks that share resources. After a change, speeds are recomputed only for
 * tasks that are connected with what changed, directly or through other tasks' resources. */
#pragma once

#include "schedule/engine.h"

/* An entry of the linked list of tasks that use a resource at present. */
typedef struct MaxMinUser {
    int task, before, after; // the entries of MaxMin.user before and after this one; -1: none
} MaxMinUser;

/* The tasks that use a resource at present. */
typedef struct MaxMinUsers {
    int first, count; // first entry of the list (-1: it is empty); number of tasks
    int seen;         // scratch: how many of these tasks sharing_of has met
    double weight;    // sum of all shares; FAIR_STALE: must be summed again
} MaxMinUsers;

#define FAIR_STALE (-1.0)

typedef struct MaxMin {
    const EngineProblem *problem;
    double *rate;            // by resource: its present rate, before slowdown by overlap
    double *speed;           // by task; 0: it uses nothing at present
    MaxMinUsers *users;      // by resource: the list of tasks that use it
    MaxMinUser *user;        // each task has an entry for each of its uses, from first_use on
    double *share;           // by entry of `user`: the share of its task, at speed 1
    int *first_use;          // by task: its first entry of `user`
    int *of_device, *device; // the resources of device d: device[of_device[d]] up to, not with,
                             // device[of_device[d + 1]]
    int *disturbed, disturbed_count;
    int *tasks, *resources;               // scratch: the tasks and resources of one connected set
    int *seen_task, *seen_resource, turn; // scratch: the last search that met it; this search
    double *left, *weight; // scratch by resource: rate left; sum of shares whose speeds grow
} MaxMin;

MaxMin max_min_create(Arena *arena, const EngineProblem *problem);

/* Register that a task begins or ends to use its resources. */
void max_min_enter(MaxMin *fair, int task);
void max_min_leave(MaxMin *fair, int task);

/* Register that the rate of a resource, or of all resources of a device, has changed. */
void max_min_disturb(MaxMin *fair, int resource);
void max_min_disturb_device(MaxMin *fair, int device);

/* Recomputes speeds that depend on changes since the last call; calls set_speed for new ones. */
void max_min_settle(MaxMin *fair, double (*rate_of)(void *state, int resource),
                    void (*set_speed)(void *state, int task, double speed), void *state);
