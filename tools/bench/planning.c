/* Times the planner, which is the same on all devices:
 *
 *     planning
 *
 * A line a measurement: what is planned, on how many devices, and the seconds that it takes, the shortest of several times. Layouts are
 * read beforehand; a plan is made and one device's part of it is lowered, as a rank does when it starts.
 */
#include "layout/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TENSOR_PARALLEL = 16, LEAST_DEVICES = 64, MOST_DEVICES = 16384, EXTENT = 8192, TIMES = 5 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const Layout *read_layout(Arena *arena, Shape shape, const char *text)
{
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse(arena, diag, (Position){"layout", 1, 1}, text);
    if (!layout || !layout_check(diag, (Position){"layout", 1, 1}, layout, shape))
        exit(1);
    return layout;
}

static double time_plan(Shape shape, const char *from_text, const char *to_text)
{
    Arena *arena = arena_create();
    const Layout *from = read_layout(arena, shape, from_text), *to = read_layout(arena, shape, to_text);
    double begin = now();
    const Plan *plan = reshard_plan(arena, NULL, &(Conversion){shape, HT_F32, from, to});
    plan_device(plan, 0);
    double seconds = now() - begin;
    arena_destroy(arena);
    return seconds;
}

/* A weight of two dimensions whose columns are cut by tensor parallelism, which doubles. Data parallelism has `rows` of the weight: "dup"
 * copies, or "0" cuts them. */
static void time_weight(const char *name, const char *rows, int devices)
{
    Arena *arena = arena_create();
    const int64_t extents[] = {EXTENT, EXTENT};
    int tensor = TENSOR_PARALLEL, data = devices / tensor;
    const char *from = arena_format(arena, "[0-%d]{%s:%d,1:%d}", devices - 1, rows, data, tensor);
    const char *to = arena_format(arena, "[0-%d]{%s:%d,1:%d}", devices - 1, rows, data / 2, 2 * tensor);
    double best = time_plan((Shape){2, extents}, from, to);
    for (int i = 1; i < TIMES; i++) {
        double seconds = time_plan((Shape){2, extents}, from, to);
        best = seconds < best ? seconds : best;
    }
    printf("%-16s %6d %.6f\n", name, devices, best);
    arena_destroy(arena);
}

int main(void)
{
    for (int devices = LEAST_DEVICES; devices <= MOST_DEVICES; devices *= 4) {
        time_weight("weight", "dup", devices);
        time_weight("weight in shards", "0", devices);
    }
    return 0;
}
