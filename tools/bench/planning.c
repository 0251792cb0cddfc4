/* Times the conversion planner, which does the same work on every device:
 *
 *     planning
 *
 * Prints a line for each measurement: devices, tensors, seconds of planning (the shortest of
 * several times), and the conversion. Layouts are parsed beforehand. Each measurement plans a
 * conversion and lowers one device's part of it, as a rank does at its start. */
#include "reshard/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TENSOR_PARALLEL = 16, LEAST_DEVICES = 64, MOST_DEVICES = 16384, EXTENT = 8192, TIMES = 5 };

/* Returns the CPU seconds of this process, so that other load of the machine does not count. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static const Layout *read_layout(Arena *arena, Shape shape, const char *text) {
    Diag *diag = diag_create(arena, stderr);
    diag_source(diag, "layout", text);
    const Layout *layout = layout_parse_text(arena, diag, (Position){"layout", 1, 1}, text);
    if (!layout || !layout_check(diag, (Position){"layout", 1, 1}, layout, shape)) exit(1);
    return layout;
}

/* Plans the conversions several times and prints a line with the shortest time. */
static void time_plan(const char *name, int devices, const Conversion *conversions, int count) {
    double shortest = INFINITY;
    for (int i = 0; i < TIMES; i++) {
        Arena *arena = arena_create();
        double begin = now();
        plan_device(reshard_plan_all(arena, NULL, conversions, count), 0);
        shortest = fmin(shortest, now() - begin);
        arena_destroy(arena);
    }
    printf("%6d %5d %.6f  %s\n", devices, count, shortest, name);
}

/* ---- one weight on many devices ---- */

/* Times the conversion of a weight (rows, columns) from tensor parallelism 16 to 32, which cuts the
 * columns. `rows` is what data parallelism does to the rows: "dup" copies them, "0" cuts them. */
static void time_weight(const char *name, const char *rows, int devices) {
    Arena *arena = arena_create();
    const int64_t extents[] = {EXTENT, EXTENT};
    const Shape shape = {2, extents};
    int tensor = TENSOR_PARALLEL, data = devices / tensor;
    const char *from = arena_format(arena, "[0-%d]{%s:%d,1:%d}", devices - 1, rows, data, tensor);
    const char *to =
        arena_format(arena, "[0-%d]{%s:%d,1:%d}", devices - 1, rows, data / 2, 2 * tensor);
    time_plan(name, devices,
              &(Conversion){shape, HT_F32, read_layout(arena, shape, from),
                            read_layout(arena, shape, to)},
              1);
    arena_destroy(arena);
}

/* ---- many tensors on 64 devices ---- */

enum { DEVICES = 64, LAYERS = 83, WIDTH = 1024, VOCABULARY = 50304 };

/* A tensor of a transformer; unused extents are 0. Tensor parallelism cuts dimension `cut`; for
 * "dup" it cuts nothing. */
typedef struct Weight {
    int rows, columns;
    const char *cut;
} Weight;

static const Weight layer_weights[] = {
    {WIDTH, 0, "dup"},       {WIDTH, 0, "dup"},   {3 * WIDTH, WIDTH, "0"}, {3 * WIDTH, 0, "0"},
    {WIDTH, WIDTH, "1"},     {WIDTH, 0, "dup"},   {WIDTH, 0, "dup"},       {WIDTH, 0, "dup"},
    {4 * WIDTH, WIDTH, "0"}, {4 * WIDTH, 0, "0"}, {WIDTH, 4 * WIDTH, "1"}, {WIDTH, 0, "dup"},
};
static const Weight first_weights[] = {{VOCABULARY, WIDTH, "0"}};
static const Weight last_weights[] = {
    {WIDTH, 0, "dup"}, {WIDTH, 0, "dup"}, {VOCABULARY, WIDTH, "0"}};

enum {
    LAYER_WEIGHTS = sizeof layer_weights / sizeof *layer_weights,
    FIRST_WEIGHTS = 1,
    LAST_WEIGHTS = 3,
    TENSORS = LAYERS * LAYER_WEIGHTS + FIRST_WEIGHTS + LAST_WEIGHTS
};

/* Returns the layout in one pipeline of four stages, each dp2 x tp8. */
static const char *one_pipeline(Arena *arena, const char *cut, int layer) {
    int first = 16 * (4 * layer / LAYERS);
    return arena_format(arena, "[%d-%d]{dup:2,%s:8}", first, first + 15, cut);
}

/* Returns the layout in two pipelines: one of two stages, each dp4 x tp4, and one of four stages,
 * each tp8. */
static const char *two_pipelines(Arena *arena, const char *cut, int layer) {
    int first = 16 * (2 * layer / LAYERS), second = 32 + 8 * (4 * layer / LAYERS);
    return arena_format(arena, "dup([%d-%d]{dup:4,%s:4} | [%d-%d]{%s:8})", first, first + 15, cut,
                        second, second + 7, cut);
}

static Conversion convert_weight(Arena *arena, const Weight *weight, int layer, int more) {
    int64_t *extents = arena_array(arena, int64_t, 2);
    Shape shape = {weight->columns ? 2 : 1, extents};
    extents[0] = weight->rows + more;
    extents[1] = weight->columns;
    return (Conversion){shape, HT_F32,
                        read_layout(arena, shape, one_pipeline(arena, weight->cut, layer)),
                        read_layout(arena, shape, two_pipelines(arena, weight->cut, layer))};
}

/* Times a switch of all weights of a transformer. Weight number n has n times `more` extra rows, so
 * that layers are alike only if `more` is 0. Each weight has parsed layouts of its own. */
static void time_switch(const char *name, int more) {
    Arena *arena = arena_create();
    Conversion *conversions = arena_array(arena, Conversion, TENSORS);
    int count = 0;
    for (int i = 0; i < FIRST_WEIGHTS; i++, count++)
        conversions[count] = convert_weight(arena, &first_weights[i], 0, more * count);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < LAYER_WEIGHTS; i++, count++)
            conversions[count] = convert_weight(arena, &layer_weights[i], layer, more * count);
    for (int i = 0; i < LAST_WEIGHTS; i++, count++)
        conversions[count] = convert_weight(arena, &last_weights[i], LAYERS - 1, more * count);
    time_plan(name, DEVICES, conversions, count);
    arena_destroy(arena);
}

int main(void) {
    for (int devices = LEAST_DEVICES; devices <= MOST_DEVICES; devices *= 4) {
        time_weight("weight, copies", "dup", devices);
        time_weight("weight, shards", "0", devices);
    }
    time_switch("tensors", 0);
    time_switch("unlike tensors", 1);
    return 0;
}
