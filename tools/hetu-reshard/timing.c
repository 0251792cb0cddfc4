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
    if (world_node_size() == 1) return processor;
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
    int count; // of tensors
    void **from, **to, *scratch;
} PlanRun;

static void run_plan(void *context) {
    const PlanRun *run = context;
    ht_reshard_run_all(run->plan, world_rank(), (const void *const *)run->from, run->to,
                       run->scratch);
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

/* Allocates this rank's pieces of a set; run_destroy frees them. All ranks call it together. */
static PlanRun run_create(Arena *arena, const Set *set) {
    PlanRun run = {plan_lowered(arena, set->plan, set->label), set->count,
                   arena_array(arena, void *, set->count), arena_array(arena, void *, set->count),
                   NULL};
    for (int t = 0; t < set->count; t++) {
        run.from[t] = zeros(piece_bytes(arena, set->cases[t], set->cases[t]->from));
        run.to[t] = zeros(piece_bytes(arena, set->cases[t], set->cases[t]->to));
    }
    run.scratch = zeros(ht_reshard_scratch(run.plan, world_rank()));
    if (channel_of_device()->prepare)
        channel_of_device()->prepare(
            &(ChannelPlans){.count = 1, .plan = &run.plan, .queues = (const unsigned[]){0}});
    return run;
}

static void run_destroy(const PlanRun *run) {
    for (int t = 0; t < run->count; t++) {
        device_free(run->from[t]);
        device_free(run->to[t]);
    }
    device_free(run->scratch);
}

double time_set(const Set *set, double budget) {
    Arena *arena = arena_create();
    PlanRun run = run_create(arena, set);
    double seconds = time_runs(run_plan, &run, budget);
    run_destroy(&run);
    arena_destroy(arena);
    return seconds;
}

/* ---- streams ---- */

/* The own stream of this rank while streams are timed; `number` -1: it has none. */
typedef struct OwnStream {
    int number;
    PlanRun message, reply;
} OwnStream;

/* Runs a batch of each stream, after a quarter as many runs that are not timed: a link that was
 * idle lets some bytes pass faster (its burst). Sets the seconds of each stream's batch. The
 * receiver's reply ends a batch, since a sender is done before its bytes have arrived. */
static void stream_batch(OwnStream *own, const Stream *streams, int count, bool together,
                         double *seconds) {
    double mine = 0, all[world_size()];
    int runs = own->number < 0 ? 0 : streams[own->number].runs;
    world_least(0);
    for (int i = 0; i < (runs + 3) / 4; i++) run_plan(&own->message);
    if (runs) run_plan(&own->reply);
    if (together) world_least(0);
    double begin = now();
    for (int i = 0; i < runs; i++) run_plan(&own->message);
    if (runs) run_plan(&own->reply);
    mine = now() - begin;
    world_gather(&mine, sizeof mine, all);
    for (int i = 0; i < count; i++)
        seconds[i] = fmax(all[streams[i].devices[0]], all[streams[i].devices[1]]);
}

/* Increases the runs of each stream until a batch takes `least` seconds. */
static void choose_runs(OwnStream *own, Stream *streams, int count, double least) {
    double seconds[count];
    bool enough = false;
    for (int i = 0; i < count; i++) streams[i].runs = 1;
    while (!enough) {
        enough = true;
        stream_batch(own, streams, count, false, seconds);
        for (int i = 0; i < count; i++) {
            if (seconds[i] >= least || streams[i].runs == MOST_RUNS) continue;
            double more = fmin(fmax(1.2 * least / seconds[i], 1.5), 16);
            streams[i].runs = (int)fmin(ceil(streams[i].runs * more), MOST_RUNS);
            enough = false;
        }
    }
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void time_streams(Stream *streams, int count, double least) {
    enum { STREAM_BATCHES = 3 };
    Arena *arena = arena_create();
    OwnStream own = {.number = -1};
    double seconds[count], all[count][STREAM_BATCHES];
    for (int i = 0; i < count; i++) {
        PlanRun message = run_create(arena, &streams[i].set),
                reply = run_create(arena, &streams[i].reply);
        bool mine = world_rank() == streams[i].devices[0] || world_rank() == streams[i].devices[1];
        if (mine) own = (OwnStream){i, message, reply};
        else {
            run_destroy(&message);
            run_destroy(&reply);
        }
    }
    if (least > 0) choose_runs(&own, streams, count, least);
    for (int b = 0; b < STREAM_BATCHES; b++) {
        stream_batch(&own, streams, count, least <= 0, seconds);
        for (int i = 0; i < count; i++) all[i][b] = seconds[i] / streams[i].runs;
    }
    for (int i = 0; i < count; i++) {
        qsort(all[i], STREAM_BATCHES, sizeof **all, by_value);
        streams[i].seconds = all[i][STREAM_BATCHES / 2];
        streams[i].shortest = all[i][0];
    }
    if (own.number >= 0) {
        run_destroy(&own.message);
        run_destroy(&own.reply);
    }
    arena_destroy(arena);
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
