/* The simulator's engine: against closed forms, and on random tasks against what must hold of any. */
#include "schedule/engine.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 1000, MOST_TASKS = 60, MOST_RESOURCES = 12, MOST_CHANGES = 8, DEVICES = 4 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
}

static double draw_real(double low, double high) { return low + (high - low) * (double)draw(1 << 20) / (1 << 20); }

/* A problem, and what was seen of it. */
typedef struct Case {
    EngineProblem problem;
    EngineTask tasks[MOST_TASKS];
    EngineUse uses[MOST_TASKS][MOST_RESOURCES];
    int waits[MOST_TASKS][MOST_TASKS];
    EngineResource resources[MOST_RESOURCES];
    EngineChange changes[MOST_CHANGES];
    double overlap[DEVICES];
    double speed[MOST_TASKS], done[MOST_TASKS], since[MOST_TASKS]; // as observed
    double now;
} Case;

static int compare_changes(const void *a, const void *b)
{
    const EngineChange *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

static void draw_task(Case *own, int t)
{
    EngineTask *task = &own->tasks[t];
    *task = (EngineTask){.latency = draw(3) ? 0 : draw_real(0, 2), .work = draw(6) ? draw_real(0.01, 3) : 0, .uses = own->uses[t], .waits = own->waits[t]};
    for (int r = 0; r < own->problem.resource_count; r++)
        if (!draw(4))
            own->uses[t][task->use_count++] = (EngineUse){r, draw(2) ? 1 : draw_real(0.05, 1)};
    for (int w = 0; w < t; w++)
        if (!draw((uint64_t)t / 2 + 2))
            own->waits[t][task->wait_count++] = w;
}

static void draw_case(Case *own)
{
    *own = (Case){.problem = {.task_count = 1 + (int)draw(MOST_TASKS), .resource_count = 1 + (int)draw(MOST_RESOURCES), .change_count = (int)draw(MOST_CHANGES + 1), .device_count = DEVICES}};
    for (int r = 0; r < own->problem.resource_count; r++)
        own->resources[r] = (EngineResource){draw(2) ? 1 : draw_real(0.1, 4), (int)draw(DEVICES + 1) - 1, draw(2), 0};
    for (int d = 0; d < DEVICES; d++)
        own->overlap[d] = draw(2) ? 1 : draw_real(1, 1.5);
    for (int c = 0; c < own->problem.change_count; c++)
        own->changes[c] = (EngineChange){draw_real(0, 8), (int)draw((uint64_t)own->problem.resource_count), draw_real(0.1, 3)};
    qsort(own->changes, (size_t)own->problem.change_count, sizeof *own->changes, compare_changes);
    for (int t = 0; t < own->problem.task_count; t++)
        draw_task(own, t);
    own->problem.tasks = own->tasks;
    own->problem.resources = own->resources;
    own->problem.changes = own->changes;
    own->problem.overlap = own->overlap;
}

/* The rate of a resource just behind `time`. */
static double rate_at(const Case *own, int resource, double time)
{
    double rate = own->resources[resource].rate;
    for (int c = 0; c < own->problem.change_count; c++)
        if (own->changes[c].resource == resource && own->changes[c].at <= time)
            rate = own->changes[c].rate;
    return rate;
}

/* Nothing carries more than its rate, by the speeds from `time` on; and some resource of every task that moves is used up. */
static void check_loads(const Case *own, double time)
{
    double load[MOST_RESOURCES] = {0};
    bool computes[DEVICES] = {false}, talks[DEVICES] = {false};
    for (int t = 0; t < own->problem.task_count; t++)
        for (int u = 0; u < own->tasks[t].use_count && own->speed[t] > 0; u++) {
            const EngineResource *resource = &own->resources[own->uses[t][u].resource];
            load[own->uses[t][u].resource] += own->speed[t] * own->uses[t][u].share;
            if (resource->device >= 0)
                (resource->computes ? computes : talks)[resource->device] = true;
        }
    bool full[MOST_RESOURCES];
    for (int r = 0; r < own->problem.resource_count; r++) {
        int device = own->resources[r].device;
        double rate = rate_at(own, r, time) / (device >= 0 && computes[device] && talks[device] ? own->overlap[device] : 1);
        assert_true(load[r] <= rate * (1 + 1e-12));
        full[r] = load[r] >= rate * (1 - 1e-9);
    }
    for (int t = 0; t < own->problem.task_count; t++) {
        bool bound = own->speed[t] == 0;
        for (int u = 0; u < own->tasks[t].use_count; u++)
            bound |= full[own->uses[t][u].resource];
        assert_true(bound);
    }
}

static void observe(void *of, double time, int task, double speed)
{
    Case *own = of;
    if (time > own->now)
        check_loads(own, own->now);
    own->now = time;
    own->done[task] += own->speed[task] * (time - own->since[task]);
    own->since[task] = time;
    own->speed[task] = speed;
}

static void check_spans(const Case *own, const EngineSpan *spans)
{
    for (int t = 0; t < own->problem.task_count; t++) {
        const EngineTask *task = &own->tasks[t];
        double ready = 0;
        for (int w = 0; w < task->wait_count; w++)
            ready = fmax(ready, spans[task->waits[w]].end);
        assert_true(spans[t].begin == ready);
        assert_true(spans[t].end >= spans[t].begin + task->latency * (1 - 1e-12));
        if (task->use_count && task->work > 0)
            assert_true(fabs(own->done[t] - task->work) <= 1e-9 * task->work);
        else
            assert_true(spans[t].end == spans[t].begin + task->latency + task->work);
    }
}

/* With half the rates, and latencies and times of changes doubled. */
static void check_halved(Arena *arena, Case *own, const EngineSpan *spans)
{
    for (int r = 0; r < own->problem.resource_count; r++)
        own->resources[r].rate /= 2;
    for (int c = 0; c < own->problem.change_count; c++)
        own->changes[c] = (EngineChange){own->changes[c].at * 2, own->changes[c].resource, own->changes[c].rate / 2};
    for (int t = 0; t < own->problem.task_count; t++) {
        own->tasks[t].latency *= 2;
        own->tasks[t].work *= own->tasks[t].use_count ? 1 : 2;
    }
    own->problem.observe = NULL;
    const EngineSpan *halved = engine_run(arena, &own->problem);
    for (int t = 0; t < own->problem.task_count; t++)
        assert_true(halved[t].begin == 2 * spans[t].begin && halved[t].end == 2 * spans[t].end);
}

static void random_tasks_hold(void **unused)
{
    (void)unused;
    static Case own;
    for (int c = 0; c < CASES; c++) {
        Arena *arena = arena_create();
        state = (uint64_t)c + 1;
        draw_case(&own);
        own.problem.observe = observe;
        own.problem.state = &own;
        const EngineSpan *spans = engine_run(arena, &own.problem);
        check_spans(&own, spans);
        check_halved(arena, &own, spans);
        arena_destroy(arena);
    }
}

/* ---- closed forms ---- */

static void flows_share_fairly(void **unused)
{
    (void)unused;
    Arena *arena = arena_create();
    /* Ports 0 and 1 send, 2 and 3 receive: 0 to 2, 0 to 3 and 1 to 3. All have half of a port; then the last one alone has all of it. */
    EngineUse uses[3][2] = {{{0, 1}, {2, 1}}, {{0, 1}, {3, 1}}, {{1, 1}, {3, 1}}};
    EngineTask tasks[3] = {{0, 1, 2, 0, uses[0], NULL}, {0, 1, 2, 0, uses[1], NULL}, {0.25, 2, 2, 0, uses[2], NULL}};
    EngineResource resources[4] = {{1, -1, false, 0}, {1, -1, false, 0}, {1, -1, false, 0}, {1, -1, false, 0}};
    EngineProblem problem = {.task_count = 3, .resource_count = 4, .tasks = tasks, .resources = resources};
    const EngineSpan *spans = engine_run(arena, &problem);
    assert_true(spans[0].end == 2 && spans[1].end == 2 && spans[2].end == 3.125);
    arena_destroy(arena);
}

static void rates_change(void **unused)
{
    (void)unused;
    Arena *arena = arena_create();
    EngineUse use = {0, 1};
    EngineTask task = {0.5, 4, 1, 0, &use, NULL};
    EngineResource resource = {1, -1, false, 0};
    EngineChange changes[] = {{0.25, 0, 0.5}, {2.5, 0, 3}};
    EngineProblem problem = {.task_count = 1, .resource_count = 1, .change_count = 2, .tasks = &task, .resources = &resource, .changes = changes};
    assert_true(engine_run(arena, &problem)[0].end == 3.5); // 2 seconds at a half, 1 at three
    arena_destroy(arena);
}

static void overlap_slows_both(void **unused)
{
    (void)unused;
    Arena *arena = arena_create();
    EngineUse computing = {0, 1}, port = {1, 1};
    EngineTask tasks[] = {{0, 2, 1, 0, &computing, NULL}, {0, 1, 1, 0, &port, NULL}};
    EngineResource resources[] = {{1, 0, true, 0}, {1, 0, false, 0}};
    double overlap = 1.25;
    EngineProblem problem = {.task_count = 2, .resource_count = 2, .device_count = 1, .tasks = tasks, .resources = resources, .overlap = &overlap};
    const EngineSpan *spans = engine_run(arena, &problem);
    assert_true(fabs(spans[1].end - 1.25) < 1e-15 && fabs(spans[0].end - 2.25) < 1e-15);
    arena_destroy(arena);
}

static void buckets_let_pass(void **unused)
{
    (void)unused;
    Arena *arena = arena_create();
    /* A bucket of 3 seconds: 2 pass at once; of 4 at the same time 1 does, which leaves 3; after these the bucket is empty, and of 2 that begin 1 second later 1 passes. */
    EngineUse use = {0, 1}, half[] = {{0, 0.5}, {1, 1}};
    const int waits[] = {1};
    EngineTask tasks[] = {{0, 2, 1, 0, &use, NULL}, {0, 4, 1, 0, &use, NULL}, {1, 2, 1, 1, &use, waits}};
    EngineResource resources[] = {{1, -1, false, 3}, {1, -1, false, 0}};
    EngineProblem problem = {.task_count = 3, .resource_count = 2, .tasks = tasks, .resources = resources};
    const EngineSpan *spans = engine_run(arena, &problem);
    assert_true(spans[0].end == 0 && spans[1].end == 3 && spans[2].end == 5);
    /* What has no bucket takes its time. */
    EngineTask both = {0, 4, 2, 0, half, NULL};
    problem = (EngineProblem){.task_count = 1, .resource_count = 2, .tasks = &both, .resources = resources};
    assert_true(engine_run(arena, &problem)[0].end == 4);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_tasks_hold), cmocka_unit_test(flows_share_fairly), cmocka_unit_test(rates_change),
                                       cmocka_unit_test(overlap_slows_both), cmocka_unit_test(buckets_let_pass)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
