/* Times kernels, a layer, and computing beside communication. */
#include "computing.h"

#include "base/memory.h"
#include "operators/kernels.h"
#include "transport/world.h"

#include <hetu/product.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 22, BATCHES = 5 };

static const double BUDGET = 0.02; // seconds of a batch

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- kernels ---- */

/* Returns buffer `which`, of MOST floats, for samples to compute on; fills it at the first call. */
static float *memory_of(int which) {
    static float *buffers[5];
    if (!buffers[which]) {
        buffers[which] = memory_array(MOST, sizeof(float));
        for (int i = 0; i < MOST; i++) buffers[which][i] = (float)(i * 7 % 13 - 6) / 16;
    }
    return buffers[which];
}

static ht_view view_of(void *data, int rank, const int64_t *extent) {
    ht_view view = {.data = data, .dtype = HT_F32, .rank = rank};
    for (int d = 0; d < rank; d++) view.extent[d] = view.global[d] = extent[d];
    return view;
}
#define VIEW(data, ...)                                                                            \
    view_of((data), (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
            (int64_t[]){__VA_ARGS__})

/* Computes y[m, n] = x[m, k] * w[n, k]. */
static void run_product(const int64_t *s) {
    ht_axis axes[] = {{s[0], s[1], s[2], 0, 0}, {s[1], 1, 0, s[2], 0}, {s[2], 0, 1, 1, 0}};
    ht_product(&(ht_product_call){.y = memory_of(0),
                                  .y_dtype = HT_F32,
                                  .x = memory_of(1),
                                  .w = memory_of(2),
                                  .dtype = HT_F32,
                                  .scale = 1,
                                  .rank = 3,
                                  .axes = axes});
}

/* Runs causal attention on (s[0] sequences, s[1] positions, s[2] heads, width s[3]). */
static void run_attention(const int64_t *s) {
    ht_view results[] = {VIEW(memory_of(0), s[0], s[1], s[2], s[3]),
                         VIEW(memory_of(4), s[0], s[1], s[2])};
    ht_view operands[] = {VIEW(memory_of(1), s[0], s[1], s[2], s[3]),
                          VIEW(memory_of(2), s[0], s[1], s[2], s[3]),
                          VIEW(memory_of(3), s[0], s[1], s[2], s[3]),
                          {0},
                          {0}};
    ht_attention_kernel(&(ht_call){.result = results,
                                   .operand = operands,
                                   .result_count = 2,
                                   .operand_count = 5,
                                   .attr = (ht_attr[]){{.i = 1}}});
}

static void run_norm(const int64_t *s) {
    ht_view results[] = {VIEW(memory_of(0), s[0], s[1]), VIEW(memory_of(3), s[0]),
                         VIEW(memory_of(4), s[0])};
    ht_view operands[] = {VIEW(memory_of(1), s[0], s[1]), {0}, {0}};
    ht_layer_norm_kernel(&(ht_call){.result = results,
                                    .operand = operands,
                                    .result_count = 3,
                                    .operand_count = 3,
                                    .attr = (ht_attr[]){{.f = 1e-5}}});
}

static void run_softmax(const int64_t *s) {
    ht_view result = VIEW(memory_of(0), s[0], s[1]), operand = VIEW(memory_of(1), s[0], s[1]);
    ht_softmax_kernel(
        &(ht_call){.result = &result, .operand = &operand, .result_count = 1, .operand_count = 1});
}

static Work product_work(const int64_t *s) {
    double m = (double)s[0], n = (double)s[1], k = (double)s[2];
    return (Work){2 * m * n * k, 4 * (m * n + m * k + n * k), true, HT_F32};
}

static Work attention_work(const int64_t *s) {
    double own = (double)(s[0] * s[1] * s[2] * s[3]);
    return (Work){2 * own * (double)s[1], 4 * (4 * own + own / (double)s[3]), false, HT_F32};
}

static Work norm_work(const int64_t *s) {
    double own = (double)(s[0] * s[1]), rows = (double)s[0];
    return (Work){9 * own, 4 * (2 * own + 2 * rows), false, HT_F32};
}

static Work softmax_work(const int64_t *s) {
    double own = (double)(s[0] * s[1]);
    return (Work){5 * own, 8 * own, false, HT_F32};
}

static const struct {
    const char *name;
    void (*run)(const int64_t *shape);
    Work (*work)(const int64_t *shape);
} kernels[] = {{"product", run_product, product_work},
               {"attention", run_attention, attention_work},
               {"layer norm", run_norm, norm_work},
               {"softmax", run_softmax, softmax_work}};

enum { PRODUCT, ATTENTION, NORM, SOFTMAX };

static int kernel_of(const char *name) {
    int k = 0;
    while (strcmp(kernels[k].name, name)) k++;
    return k;
}

int computing_samples(Arena *arena, Sample **samples) {
    static const struct {
        int kernel;
        bool fits;
        int64_t shape[4];
    } all[] = {{PRODUCT, true, {16, 16, 16}},       {PRODUCT, true, {32, 32, 32}},
               {PRODUCT, true, {64, 64, 64}},       {PRODUCT, true, {128, 128, 128}},
               {PRODUCT, true, {256, 256, 256}},    {PRODUCT, true, {512, 512, 512}},
               {PRODUCT, true, {1024, 1024, 1024}}, {PRODUCT, false, {64, 192, 48}},
               {PRODUCT, false, {256, 1024, 192}},  {PRODUCT, false, {96, 96, 1000}},
               {PRODUCT, false, {1000, 300, 100}},  {ATTENTION, true, {1, 64, 4, 32}},
               {ATTENTION, true, {1, 256, 4, 64}},  {ATTENTION, false, {2, 128, 8, 32}},
               {ATTENTION, false, {1, 512, 2, 64}}, {NORM, true, {512, 256}},
               {NORM, false, {128, 1024}},          {NORM, false, {2048, 768}},
               {SOFTMAX, true, {512, 256}},         {SOFTMAX, false, {128, 1024}},
               {SOFTMAX, false, {4096, 256}},       {NORM, true, {1, 8}}};
    int count = (int)(sizeof all / sizeof *all);
    *samples = arena_array(arena, Sample, count);
    for (int i = 0; i < count; i++) {
        Sample *own = &(*samples)[i];
        *own = (Sample){.what = kernels[all[i].kernel].name,
                        .work = kernels[all[i].kernel].work(all[i].shape),
                        .fits = all[i].fits};
        memcpy(own->shape, all[i].shape, sizeof own->shape);
    }
    return count;
}

/* ---- clocks ---- */

/* Returns the maximum of `mine` over all ranks. */
static double longest(double mine) {
    double *all = memory_array(world_size(), sizeof *all), most = 0;
    world_gather(&mine, sizeof mine, all);
    world_broadcast(all, sizeof *all * (size_t)world_size());
    for (int r = 0; r < world_size(); r++) most = fmax(most, all[r]);
    free(all);
    return most;
}

/* Returns the seconds of a run on this rank, the mean of `runs` runs. All ranks begin together. */
static double time_runs(void (*run)(const int64_t *), const int64_t *shape, int64_t runs) {
    longest(0);
    double begin = now();
    for (int64_t i = 0; i < runs; i++) run(shape);
    return (now() - begin) / (double)runs;
}

static double time_best(void (*run)(const int64_t *), const int64_t *shape) {
    time_runs(run, shape, 1);
    double once = longest(time_runs(run, shape, 1)), best = INFINITY;
    int64_t runs = once > 0 ? (int64_t)fmin(1e6, fmax(1, BUDGET / once)) : 1000;
    for (int b = 0; b < BATCHES; b++) best = fmin(best, longest(time_runs(run, shape, runs)));
    return best;
}

double computing_seconds(const Sample *sample) {
    return time_best(kernels[kernel_of(sample->what)].run, sample->shape);
}

/* ---- a layer ---- */

enum { TOKENS = 128, WIDTH = 128, LAYER_HEADS = 4 };

static const struct {
    int kernel;
    int64_t shape[4];
} layer[] = {{NORM, {TOKENS, WIDTH}},
             {PRODUCT, {TOKENS, 3 * WIDTH, WIDTH}},
             {ATTENTION, {1, TOKENS, LAYER_HEADS, WIDTH / LAYER_HEADS}},
             {PRODUCT, {TOKENS, WIDTH, WIDTH}},
             {NORM, {TOKENS, WIDTH}},
             {PRODUCT, {TOKENS, 4 * WIDTH, WIDTH}},
             {SOFTMAX, {TOKENS, 4 * WIDTH}},
             {PRODUCT, {TOKENS, WIDTH, 4 * WIDTH}}};

enum { LAYER_KERNELS = sizeof layer / sizeof *layer };

/* Runs a stack of *depth layers between a product before them and a product after them. */
static void run_stack(const int64_t *depth) {
    run_product((int64_t[]){TOKENS, WIDTH, 256});
    for (int64_t l = 0; l < depth[0]; l++)
        for (int k = 0; k < LAYER_KERNELS; k++) kernels[layer[k].kernel].run(layer[k].shape);
    run_product((int64_t[]){TOKENS, 256, WIDTH});
}

double layer_seconds(Work *works, int room, int *count) {
    for (*count = 0; *count < LAYER_KERNELS && *count < room; ++*count)
        works[*count] = kernels[layer[*count].kernel].work(layer[*count].shape);
    return (time_best(run_stack, (int64_t[]){6}) - time_best(run_stack, (int64_t[]){2})) / 4;
}

/* ---- computing and communicating at once ---- */

static const int64_t overlapped[] = {192, 192, 192};

enum { MESSAGE = 1 << 18 };

static void exchange_once(const int64_t *unused) {
    (void)unused;
    int next = (world_rank() + 1) % world_size(),
        before = (world_rank() + world_size() - 1) % world_size();
    HostTransfer send = {.rank = next, .bytes = MESSAGE, .data = memory_of(3)},
                 receive = {.rank = before, .bytes = MESSAGE, .data = memory_of(4)};
    world_exchange(&send, 1, &receive, 1);
}

typedef struct Computer {
    int64_t runs;
    double seconds;
} Computer;

static void *compute(void *argument) {
    Computer *own = argument;
    double begin = now();
    for (int64_t i = 0; i < own->runs; i++) run_product(overlapped);
    own->seconds = now() - begin;
    return NULL;
}

/* Returns the seconds of products in another thread and exchanges in this one, until both end. */
static double time_both(int64_t products, int64_t exchanges) {
    pthread_t thread;
    Computer computer = {products, 0};
    longest(0);
    double begin = now();
    bool beside = !pthread_create(&thread, NULL, compute, &computer);
    for (int64_t i = 0; i < exchanges; i++) exchange_once(NULL);
    double talked = now() - begin;
    if (beside) pthread_join(thread, NULL);
    return longest(fmax(talked, computer.seconds));
}

double overlap_of_both(void) {
    double product = time_best(run_product, overlapped),
           exchange = world_size() > 1 ? time_best(exchange_once, overlapped) : 0, best = INFINITY;
    int64_t products = (int64_t)fmax(1, 2 * BUDGET / product),
            exchanges = exchange > 0 ? (int64_t)fmax(1, 2 * BUDGET / exchange) : 0;
    if (!exchanges) return 1;
    double alone = fmax((double)products * product, (double)exchanges * exchange);
    for (int b = 0; b < BATCHES; b++) best = fmin(best, time_both(products, exchanges));
    return fmin(fmax(best / alone, 1), 2);
}
