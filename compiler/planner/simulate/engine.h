/* The engine: when tasks that share resources begin and end, event by event.
 *
 * A task begins when all that it waits for has ended. For its `latency` it uses nothing; then it
 * goes on at a speed, until `work` seconds at speed 1 are done. Of each resource that it uses it
 * takes `share` times its speed, and what all tasks take of a resource is never more than its rate.
 * Within these bounds speeds are fair: all grow alike until a resource that they use is used up
 * (max-min fairness by progressive filling). A processor is a resource, and so is each direction of
 * a link's port.
 *
 * Rates change at given times. A device slows itself down while it computes and communicates at
 * once: by its `overlap`, all its resources.
 *
 * There is no tolerance in the engine, and no constant of time: where all rates are halved, and
 * latencies doubled, all times are doubled to the bit.
 */
#ifndef PLANNER_SIMULATE_ENGINE_H
#define PLANNER_SIMULATE_ENGINE_H

#include "support/arena.h"

#include <stdbool.h>

typedef struct EngineUse {
    int resource;
    double share; // of a rate of 1 at speed 1: above 0
} EngineUse;

typedef struct EngineTask {
    double latency, work; // seconds
    int use_count, wait_count;
    const EngineUse *uses; // each resource once; a task without any goes at speed 1
    const int *waits;      // numbers of other tasks
} EngineTask;

typedef struct EngineResource {
    double rate; // above 0
    int device;  // whose resource it is; -1: of none, where nothing slows down
    bool computes;
} EngineResource;

typedef struct EngineChange {
    double at; // seconds
    int resource;
    double rate; // from then on: above 0
} EngineChange;

typedef struct EngineProblem {
    int task_count, resource_count, change_count, device_count;
    const EngineTask *tasks;
    const EngineResource *resources;
    const EngineChange *changes; // in the order of their times
    const double *overlap;       // by device: 1 at least
    /* Called where the speed of a task changes, to 0 when it ends; NULL: not wanted. */
    void (*observe)(void *state, double time, int task, double speed);
    void *state;
} EngineProblem;

typedef struct EngineSpan {
    double begin, end; // seconds
} EngineSpan;

/* The spans of all tasks, in the arena. Tasks that wait for each other in a circle are a bug. */
EngineSpan *engine_run(Arena *arena, const EngineProblem *problem);

#endif
