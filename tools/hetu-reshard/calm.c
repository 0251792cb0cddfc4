/* Waits until the machine is quiet enough for measurements.
 *
 *     calm_begin(arena, cluster);
 *     calm_wait();
 *     ... time_set(...) ...
 *
 * The host of a virtual machine may move its processors while ranks run. Ranks that shared a cache
 * are then far apart for some seconds, and their exchanges take up to twice as long. So one
 * conversion, the probe, is timed before each measurement. The measurement waits while the probe
 * takes longer than its shortest time, or than the cluster file predicts. */
#include "timing.h"

#include "cost/cost.h"
#include "transport/world.h"

#include <math.h>
#include <time.h>

/* Ratio up to which two times count as equal; seconds between two probes. */
static const double like = 1.3, nap = 0.05;

static struct {
    Set set;
    bool described;  // by a cluster file
    double shortest; // seconds
    double patience; // seconds that may still be spent waiting
} calm;

void calm_begin(Arena *arena, const Cluster *cluster) {
    int last = world_size() - 1, ranks = world_size();
    if (!last) return;
    const char *text = arena_format(arena, "f32[%d,%d]: [0-%d]{0:%d} -> [0-%d]{1:%d}", 64 * ranks,
                                    64 * ranks, last, ranks, last, ranks);
    Case **conversion = arena_array(arena, Case *, 1);
    *conversion = case_read(arena, diag_create(arena, stderr), (Position){0}, text);
    calm.set = set_plan(arena, conversion, 1, cluster);
    calm.described = cluster && cluster->device_count > last;
    calm.shortest = calm.described ? conversion_seconds(cluster, calm.set.plan) : INFINITY;
    calm.patience = 20;
}

/* Prints a warning, on one rank. */
static void tell(const char *advice, double seconds) {
    if (!world_rank())
        fprintf(
            stderr,
            "hetu-reshard: the ranks exchange in %.2g s what took, or should take, %.2g s: %s\n",
            seconds, calm.shortest, advice);
}

static void note_seconds(double seconds) {
    if (calm.described && like * seconds < calm.shortest)
        tell("the cluster file was measured on a slower machine, or on one that was disturbed; "
             "measure it again",
             seconds);
    if (seconds < calm.shortest) calm.shortest = seconds;
}

/* Returns whether to stop waiting: the probe is fast enough, or the waiting time is used up. */
static bool is_calm(double seconds) {
    if (seconds <= like * calm.shortest || calm.patience < 0) return true;
    calm.patience -= nap;
    if (calm.patience < 0)
        tell("the machine is disturbed, and what is measured now is too long", seconds);
    return false;
}

void calm_wait(void) {
    while (calm.set.count) {
        double seconds = time_set(&calm.set, nap / 10);
        note_seconds(seconds);
        if (is_calm(seconds)) return;
        nanosleep(&(struct timespec){.tv_nsec = (long)(nap * 1e9)}, NULL);
    }
}
