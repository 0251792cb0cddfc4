/* The discrete-event engine: computes when tasks that share resources begin and end.
 *
 * A task begins when all tasks that it waits for have ended. During its `latency` it uses no
 * resource; then its `work`, in seconds at speed 1, proceeds at some speed. The task takes `share`
 * times its speed from each of its resources; all tasks together take at most the resource's rate.
 * Speeds are max-min fair (progressive filling): all speeds grow alike until a resource is
 * exhausted. A device's processor is a resource, and so is each direction of its ports.
 *
 *     two messages of 1 s through one port: both at speed 1/2, both end after 2 s
 *
 * Rates change at given times. While a device computes and communicates at once, all its resources
 * are slower by its `overlap`.
 *
 * The engine has no tolerance and no constant of time: when all rates are halved and latencies
 * doubled, all times are doubled to the bit. The report runs gradient reductions with it, the
 * simulator whole steps. */
#pragma once

#include "support/arena.h"

#include <stdbool.h>

typedef struct EngineUse {
    int resource;
    double share; // fraction of a rate of 1 that a task takes at speed 1; above 0
} EngineUse;

typedef struct EngineTask {
    double latency, work; // seconds
    int use_count, wait_count;
    const EngineUse *uses; // each resource once; a task without uses runs at speed 1
    const int *waits;      // tasks that must end first
} EngineTask;

typedef struct EngineResource {
    double rate;   // limit of the sum of share times speed over the tasks; above 0
    int device;    // the device that owns it; -1: no device, and no overlap slows it down
    bool computes; // true: a processor; false: one direction of a port or uplink
    double bucket; // seconds of its use, at rate 1, that take no time after it has been idle
} EngineResource;

typedef struct EngineChange {
    double at; // seconds: when the rate changes
    int resource;
    double rate; // the new rate, above 0
} EngineChange;

typedef struct EngineProblem {
    int task_count, resource_count, change_count, device_count;
    const EngineTask *tasks;
    const EngineResource *resources;
    const EngineChange *changes; // in the order of their times
    const double *overlap; // by device: slowdown while computing and communicating, at least 1
    /* Is called when the speed of a task changes, with 0 when the task ends; may be NULL. */
    void (*observe)(void *state, double time, int task, double speed);
    void *state;
} EngineProblem;

typedef struct EngineSpan {
    double begin, end; // seconds
} EngineSpan;

/* Returns how many of `busy` seconds of use take no time when they begin at `now`: the tokens in a
 * resource's bucket, which refills at rate 1. `*due` is when all earlier use has been paid for.
 *
 *     bucket 3: 2 s of use at time 0: all are free; 2 s more: 1 s is; after 1 s idle: 1 s is */
double engine_free(double bucket, double *due, double now, double busy);

/* Runs all tasks and returns their spans, by task. A cycle of waiting tasks is a bug. */
EngineSpan *engine_run(Arena *arena, const EngineProblem *problem);
