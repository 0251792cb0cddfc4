/* Runs tasks event by event, and slows a device that computes and communicates at once (rate_now).
 * link_contention.c computes shares of links. */
#include "schedule/engine.h"

#include "schedule/link_contention.h"
#include "support/diag.h"

#include <math.h>

typedef enum TaskState { TASK_WAITS, TASK_LATENCY, TASK_WORKS, TASK_OVER } TaskState;

typedef struct TaskRun {
    TaskState state;
    int waits;    // number of tasks that it still waits for
    double left;  // work left at time `since`, in seconds at speed 1
    double since; // when its speed last changed
    double due;   // when its latency or its work ends at this speed
    int place;    // index in the heap; -1: the task is not in the heap
} TaskRun;

typedef struct Engine {
    const EngineProblem *problem;
    EngineSpan *spans;
    TaskRun *runs;
    // the tasks that wait for task t: next[first[t]] up to, not with, next[first[t + 1]]
    int *first, *next;
    int *heap, heap_count; // heap of running tasks by `due`
    int *computing, *busy; // by device: the number of tasks that use its processor, and its links
    int change;            // index of the next entry of problem->changes
    MaxMin fair;
    double *due; // by resource: when its use so far is paid for (engine_free)
    double now;
} Engine;

/* ---- the heap of running tasks ---- */

/* Returns whether task a is due before b; at equal times the lower number comes first. */
static bool due_before(const Engine *engine, int a, int b) {
    double x = engine->runs[a].due, y = engine->runs[b].due;
    return x < y || (!(y < x) && a < b);
}

static void set_place(Engine *engine, int place, int task) {
    engine->heap[place] = task;
    engine->runs[task].place = place;
}

static void rise(Engine *engine, int place, int task) {
    for (int above; place && due_before(engine, task, engine->heap[above = (place - 1) / 2]);
         place = above)
        set_place(engine, place, engine->heap[above]);
    set_place(engine, place, task);
}

static void sink(Engine *engine, int place, int task) {
    for (int below; (below = 2 * place + 1) < engine->heap_count; place = below) {
        below += below + 1 < engine->heap_count &&
                 due_before(engine, engine->heap[below + 1], engine->heap[below]);
        if (!due_before(engine, engine->heap[below], task)) break;
        set_place(engine, place, engine->heap[below]);
    }
    set_place(engine, place, task);
}

static void heap_put(Engine *engine, int task, double due) {
    TaskRun *run = &engine->runs[task];
    bool later = run->place >= 0 && run->due < due;
    run->due = due;
    if (run->place < 0) rise(engine, engine->heap_count++, task);
    else if (later) sink(engine, run->place, task);
    else rise(engine, run->place, task);
}

static int heap_take(Engine *engine) {
    int task = engine->heap[0], last = engine->heap[--engine->heap_count];
    engine->runs[task].place = -1;
    if (engine->heap_count) sink(engine, 0, last);
    return task;
}

/* ---- speeds of tasks ---- */

/* Returns a resource's present rate, lower while its device computes and communicates at once. */
static double rate_now(const Engine *engine, int resource) {
    const EngineResource *own = &engine->problem->resources[resource];
    bool both = own->device >= 0 && engine->computing[own->device] && engine->busy[own->device];
    return engine->fair.rate[resource] / (both ? engine->problem->overlap[own->device] : 1);
}

/* Changes the speed of a task and its place in the heap, and calls observe. */
static void set_speed(void *state, int task, double speed) {
    Engine *engine = state;
    TaskRun *run = &engine->runs[task];
    run->left = fmax(run->left - engine->fair.speed[task] * (engine->now - run->since), 0);
    run->since = engine->now;
    engine->fair.speed[task] = speed;
    heap_put(engine, task, engine->now + run->left / speed);
    if (engine->problem->observe)
        engine->problem->observe(engine->problem->state, engine->now, task, speed);
}

static double rate_of(void *state, int resource) { return rate_now(state, resource); }

/* Registers that a task begins (step 1) or ends (step -1) to use its resources, so that
 * max_min_settle recomputes the speeds that depend on them. */
static void change_uses(Engine *engine, int task, int step) {
    const EngineTask *own = &engine->problem->tasks[task];
    for (int u = 0; u < own->use_count; u++) {
        const EngineResource *resource = &engine->problem->resources[own->uses[u].resource];
        if (resource->device < 0) continue;
        int *count = &(resource->computes ? engine->computing : engine->busy)[resource->device];
        bool before = engine->computing[resource->device] && engine->busy[resource->device];
        *count += step;
        bool after = engine->computing[resource->device] && engine->busy[resource->device];
        if (before != after) max_min_disturb_device(&engine->fair, resource->device);
    }
    (step > 0 ? max_min_enter : max_min_leave)(&engine->fair, task);
}

/* ---- beginning and ending tasks ---- */

double engine_free(double bucket, double *due, double now, double busy) {
    double owed = fmax(*due - now, 0);
    *due = fmax(*due, now) + busy;
    return fmin(fmax(bucket - owed, 0), busy);
}

/* Returns a task's work less what the buckets of its resources let pass at once. */
static double work_left(Engine *engine, const EngineTask *own) {
    double left = 0;
    bool buckets = false;
    for (int u = 0; u < own->use_count; u++)
        buckets |= engine->problem->resources[own->uses[u].resource].bucket > 0;
    if (!buckets) return own->work;
    for (int u = 0; u < own->use_count; u++) {
        int resource = own->uses[u].resource;
        double busy = own->uses[u].share * own->work;
        busy -= engine_free(engine->problem->resources[resource].bucket, &engine->due[resource],
                            engine->now, busy);
        left = fmax(left, busy / own->uses[u].share);
    }
    return left;
}

static void begin_work(Engine *engine, int task) {
    const EngineTask *own = &engine->problem->tasks[task];
    TaskRun *run = &engine->runs[task];
    run->state = TASK_WORKS;
    run->left = work_left(engine, own);
    run->since = engine->now;
    if (own->use_count && own->work > 0) {
        change_uses(engine, task, 1);
        return;
    }
    heap_put(engine, task, engine->now + own->work);
}

static void begin_task(Engine *engine, int task) {
    const EngineTask *own = &engine->problem->tasks[task];
    engine->spans[task].begin = engine->now;
    engine->runs[task].state = TASK_LATENCY;
    if (own->latency > 0) heap_put(engine, task, engine->now + own->latency);
    else begin_work(engine, task);
}

static void end_task(Engine *engine, int task) {
    const EngineTask *own = &engine->problem->tasks[task];
    engine->spans[task].end = engine->now;
    engine->runs[task].state = TASK_OVER;
    if (own->use_count && own->work > 0) {
        change_uses(engine, task, -1);
        if (engine->problem->observe)
            engine->problem->observe(engine->problem->state, engine->now, task, 0);
    }
    for (int i = engine->first[task]; i < engine->first[task + 1]; i++)
        if (!--engine->runs[engine->next[i]].waits) begin_task(engine, engine->next[i]);
}

static void end_leg(Engine *engine, int task) {
    if (engine->runs[task].state == TASK_LATENCY) begin_work(engine, task);
    else end_task(engine, task);
}

static void change_rate(Engine *engine, const EngineChange *change) {
    engine->fair.rate[change->resource] = change->rate;
    max_min_disturb(&engine->fair, change->resource);
}

/* ---- the event loop ---- */

/* Builds, for each task, the list of tasks that wait for it (first, next). */
static void find_followers(Arena *arena, Engine *engine) {
    const EngineProblem *problem = engine->problem;
    int *first = engine->first = arena_array(arena, int, problem->task_count + 2), total = 0;
    for (int t = 0; t < problem->task_count; t++)
        for (int w = 0; w < problem->tasks[t].wait_count; w++, total++)
            first[problem->tasks[t].waits[w] + 2]++;
    for (int t = 0; t < problem->task_count; t++) first[t + 2] += first[t + 1];
    engine->next = arena_array(arena, int, total + 1);
    for (int t = 0; t < problem->task_count; t++)
        for (int w = 0; w < problem->tasks[t].wait_count; w++)
            engine->next[first[problem->tasks[t].waits[w] + 1]++] = t;
}

static Engine engine_create(Arena *arena, const EngineProblem *problem, EngineSpan *spans) {
    Engine engine = {.problem = problem,
                     .spans = spans,
                     .runs = arena_array(arena, TaskRun, problem->task_count),
                     .heap = arena_array(arena, int, problem->task_count),
                     .computing = arena_array(arena, int, problem->device_count),
                     .busy = arena_array(arena, int, problem->device_count),
                     .due = arena_array(arena, double, problem->resource_count)};
    for (int t = 0; t < problem->task_count; t++)
        engine.runs[t] = (TaskRun){.waits = problem->tasks[t].wait_count, .place = -1};
    engine.fair = max_min_create(arena, problem);
    find_followers(arena, &engine);
    return engine;
}

/* Processes the next event; false: no task is left. At one time, rates change before tasks end. */
static bool next_event(Engine *engine) {
    const EngineProblem *problem = engine->problem;
    const EngineChange *change =
        engine->change < problem->change_count ? &problem->changes[engine->change] : NULL;
    if (!engine->heap_count) return false;
    if (change && change->at <= engine->runs[engine->heap[0]].due) {
        engine->now = fmax(engine->now, change->at);
        change_rate(engine, change);
        engine->change++;
    } else {
        int task = heap_take(engine);
        engine->now = engine->runs[task].due;
        end_leg(engine, task);
    }
    return true;
}

EngineSpan *engine_run(Arena *arena, const EngineProblem *problem) {
    Arena *scratch = arena_create();
    EngineSpan *spans = arena_array(arena, EngineSpan, problem->task_count);
    Engine engine = engine_create(scratch, problem, spans);
    for (int t = 0; t < problem->task_count; t++)
        if (!problem->tasks[t].wait_count) begin_task(&engine, t);
    do max_min_settle(&engine.fair, rate_of, set_speed, &engine);
    while (next_event(&engine));
    for (int t = 0; t < problem->task_count; t++)
        if (engine.runs[t].state != TASK_OVER)
            BUG("task %d of %d waits for itself", t, problem->task_count);
    arena_destroy(scratch);
    return spans;
}
