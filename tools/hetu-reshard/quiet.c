/* Waits until the machine is quiet enough for measurements.
 *
 *     quiet_begin(arena, cluster);
 *     quiet_wait();
 *     ... time_set(...) ...
 *
 * The host of a virtual machine may move its processors while ranks run. Ranks that shared a cache
 * are then far apart for some seconds, and their exchanges take up to twice as long. So one
 * conversion, the probe, is timed before each measurement. The measurement waits while the probe
 * takes over 1.3 times its shortest time so far or the time that the cluster file predicts. */
#include "timing.h"

#include "cost/cost.h"
#include "transport/world.h"

#include <math.h>
#include <time.h>

/* like: ratio up to which two times count as equal; pause: seconds between two probes. */
static const double like = 1.3, pause = 0.05;

static struct {
    Set set;
    bool described;  // a cluster file predicts the probe's time
    double shortest; // shortest seconds of the probe so far; at first the prediction
    double patience; // seconds that may still be spent waiting
} quiet;

void quiet_begin(Arena *arena, const Cluster *cluster) {
    int last = world_size() - 1, ranks = world_size();
    if (!last) return;
    const char *text = arena_format(arena, "f32[%d,%d]: [0-%d]{0:%d} -> [0-%d]{1:%d}", 64 * ranks,
                                    64 * ranks, last, ranks, last, ranks);
    Case **conversion = arena_array(arena, Case *, 1);
    *conversion = case_read(arena, diag_create(arena, stderr), (Position){0}, text);
    quiet.set = set_plan(arena, conversion, 1, cluster);
    quiet.described = cluster && cluster->device_count > last;
    quiet.shortest = quiet.described ? conversion_seconds(cluster, quiet.set.plan) : INFINITY;
    quiet.patience = 20;
}

/* Prints a warning on rank 0, with the probe's time, `seconds`, and `advice`. */
static void tell(const char *advice, double seconds) {
    if (!world_rank())
        fprintf(
            stderr,
            "hetu-reshard: the ranks exchange in %.2g s what took, or should take, %.2g s: %s\n",
            seconds, quiet.shortest, advice);
}

static void note_seconds(double seconds) {
    if (quiet.described && like * seconds < quiet.shortest)
        tell("the cluster file was measured on a slower machine, or on one that was disturbed; "
             "measure it again",
             seconds);
    if (seconds < quiet.shortest) quiet.shortest = seconds;
}

/* Returns whether to stop waiting: the probe is fast enough, or the waiting time is used up. */
static bool is_quiet(double seconds) {
    if (seconds <= like * quiet.shortest || quiet.patience < 0) return true;
    quiet.patience -= pause;
    if (quiet.patience < 0)
        tell("the machine is disturbed, and what is measured now is too long", seconds);
    return false;
}

void quiet_wait(void) {
    while (quiet.set.count) {
        double seconds = time_set(&quiet.set, pause / 10);
        note_seconds(seconds);
        if (is_quiet(seconds)) return;
        nanosleep(&(struct timespec){.tv_nsec = (long)(pause * 1e9)}, NULL);
    }
}
