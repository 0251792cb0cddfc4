/* Times runs on ranks that share processors with other processes. Runs are timed in batches, long
 * enough for the ranks to take turns. A batch ends when its slowest rank is done; the shortest
 * batch counts, since disturbances only add time. */
#include "timing.h"

#include "device/device.h"
#include "exchange/channel.h"
#include "exchange/copy_boxes.h"
#include "transport/world.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_BATCHES = 4, MOST_RUNS = 10000, MOST_BUDGETS = 4 };

int pin_rank(void) {
    cpu_set_t allowed, own;
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return -1;
    int left = world_node_rank() % CPU_COUNT(&allowed), processor = 0;
    while (!CPU_ISSET(processor, &allowed) || left--) processor++;
    CPU_SET(processor, &own);
    return sched_setaffinity(0, sizeof own, &own) ? -1 : processor;
}

/* The function that is timed. */
typedef void Run(void *context);

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Returns the minimum of `mine` over all ranks, on every rank (all-reduce). */
static double least_of_ranks(double mine) {
    double least = mine, all[world_size()];
    world_gather(&mine, sizeof mine, all);
    for (int rank = 0; rank < world_size(); rank++) least = all[rank] < least ? all[rank] : least;
    return least;
}

/* Returns the seconds of a run in a batch of `runs`, from the arrival of the last rank until all
 * ranks are done. Each rank's own start would be wrong: a rank that waits for a shared processor
 * starts late, and would hide the wait. */
static double time_batch(Run *run, void *context, int runs) {
    double begin = now();
    world_least(0);
    for (int i = 0; i < runs; i++) run(context);
    world_least(0);
    return least_of_ranks((now() - begin) / runs);
}

/* Seconds of a run in the two shortest batches so far. */
typedef struct Shortest {
    double first, second;
} Shortest;

static void note_batch(Shortest *shortest, double seconds) {
    if (seconds < shortest->first) *shortest = (Shortest){seconds, shortest->first};
    else if (seconds < shortest->second) shortest->second = seconds;
}

/* Returns the seconds of a run in the shortest batch; runs batches for `budget` seconds. While the
 * two shortest batches differ, all may have been disturbed: runs for up to MOST_BUDGETS budgets. */
static double time_batches(Run *run, void *context, int runs, double budget) {
    const double alike = 1.1;
    Shortest shortest = {INFINITY, INFINITY};
    double spent = 0;
    for (int count = 0; count < LEAST_BATCHES || spent < budget ||
                        (shortest.second > alike * shortest.first && spent < MOST_BUDGETS * budget);
         count++) {
        double seconds = time_batch(run, context, runs);
        note_batch(&shortest, seconds);
        spent += seconds * runs;
    }
    return shortest.first;
}

/* Returns the seconds of a run. Discards the first run, which opens connections and touches memory;
 * doubles the runs of a batch until a batch is long enough, then times batches. */
static double time_runs(Run *run, void *context, double budget) {
    int runs = 1;
    time_batch(run, context, 1);
    while (time_batch(run, context, runs) * runs < budget / 50 && runs < MOST_RUNS) runs *= 2;
    return time_batches(run, context, runs, budget);
}

/* ---- conversions ---- */

typedef struct PlanRun {
    const ht_reshard *plan;
    const void *const *from;
    void *const *to;
    void *scratch;
} PlanRun;

static void run_plan(void *context) {
    const PlanRun *run = context;
    ht_reshard_run_all(run->plan, world_rank(), run->from, run->to, run->scratch);
}

/* Returns the bytes of this rank's piece of a case under a layout. */
static int64_t piece_bytes(Arena *arena, const Case *conversion, const Layout *layout) {
    return layout_region(arena, layout, conversion->shape, world_rank()).volume *
           case_element(conversion);
}

static void *zeros(int64_t bytes) {
    void *data = device_alloc(bytes), *host = device_map(data, bytes, DEVICE_WRITE);
    memset(host, 0, (size_t)bytes);
    device_unmap(data, host, bytes, DEVICE_WRITE);
    return data;
}

double time_set(const Set *set, double budget) {
    Arena *arena = arena_create();
    const ht_reshard *plan = plan_lowered(arena, set->plan, set->label);
    void **from = arena_array(arena, void *, set->count),
         **to = arena_array(arena, void *, set->count);
    for (int t = 0; t < set->count; t++) {
        from[t] = zeros(piece_bytes(arena, set->cases[t], set->cases[t]->from));
        to[t] = zeros(piece_bytes(arena, set->cases[t], set->cases[t]->to));
    }
    PlanRun run = {plan, (const void *const *)from, to,
                   zeros(ht_reshard_scratch(plan, world_rank()))};
    if (channel_of_device()->prepare)
        channel_of_device()->prepare(
            &(ChannelPlans){.count = 1, .plan = &plan, .queues = (const unsigned[]){0}});
    double seconds = time_runs(run_plan, &run, budget);
    for (int t = 0; t < set->count; t++) {
        device_free(from[t]);
        device_free(to[t]);
    }
    device_free(run.scratch);
    arena_destroy(arena);
    return seconds;
}

/* ---- copies ---- */

typedef struct CopyRun {
    ht_move move;
    char *from, *to;
} CopyRun;

static void run_copy(void *context) {
    const CopyRun *run = context;
    ht_move_copy(&run->move, 1, run->to, run->from);
    __asm__ volatile("" : : "r"(run->to) : "memory");
}

double time_copies(int64_t bytes, int64_t row, int64_t apart, double budget) {
    int64_t copied = bytes / 2, rows = copied / row;
    const ht_stride dims[] = {{rows, apart, row}, {row, 1, 1}};
    CopyRun run = {
        {.rank = 2, .dim = dims}, malloc((size_t)(rows * apart)), malloc((size_t)copied)};
    if (!run.from || !run.to)
        ht_fail("out of memory: %lld bytes to measure copies", (long long)bytes);
    memset(run.from, 1, (size_t)(rows * apart));
    memset(run.to, 1, (size_t)copied);
    double seconds = time_runs(run_copy, &run, budget);
    free(run.from);
    free(run.to);
    return seconds;
}

/* ---- combinations ---- */

typedef struct CombineRun {
    ht_dtype dtype;
    ht_reduction reduction;
    void *to, *from;
    int64_t count;
} CombineRun;

static void run_combine(void *context) {
    const CombineRun *run = context;
    ht_combine(run->dtype, run->reduction, run->to, run->from, run->count);
}

double time_combinations(ht_dtype dtype, ht_reduction reduction, int64_t bytes, double budget) {
    CombineRun run = {dtype, reduction, zeros(bytes), zeros(bytes),
                      bytes / (int64_t)ht_dtype_bytes(dtype)};
    double seconds = time_runs(run_combine, &run, budget);
    device_free(run.to);
    device_free(run.from);
    return seconds;
}
