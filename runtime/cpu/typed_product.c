/* ht_product for operands and results of any type: by oneDNN if it takes the call, else bf16 is
 * widened to f32 and rounded again. */
#include <hetu/strict_math.h> // what is applied to a product has the bits of a kernel of its own

#include "device/contraction.h"
#include "cpu/cpu.h"
#include "cpu/onednn.h"
#include "cpu/rows.h"

#include <hetu/vector_math.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <hetu/rt.h>

/* Returns the number of elements from the first to the last that the axes reach in a tensor; 0 if
 * the tensor is empty. `field` is the offset of the tensor's stride in an axis. */
static int64_t span_of(const ht_product_call *call, size_t field) {
    int64_t span = 1;
    for (int i = 0; i < call->rank; i++) {
        int64_t stride = *(const int64_t *)((const char *)&call->axes[i] + field);
        if (stride && call->axes[i].extent == 0) return 0;
        span += (call->axes[i].extent - 1) * stride;
    }
    return span;
}

ht_view product_view(const ht_product_call *call, const void *data, ht_dtype dtype, size_t field) {
    return (ht_view){
        .data = (void *)data, .dtype = dtype, .rank = 1, .extent = {span_of(call, field)}};
}

/* Returns GELU by the tanh approximation, as ht_gelu of <hetu/ops.h>. */
static inline float gelu(float x) {
    return 0.5f * x * (1 + ht_tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

HT_CLONES static void gelu_block(float *restrict to, const float *restrict from, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = gelu(from[i]);
}

HT_CLONES static void relu_block(float *restrict to, const float *restrict from, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = from[i] <= 0 ? 0 : from[i];
}

HT_CLONES static void round_block(uint16_t *restrict to, const float *restrict from,
                                  int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; i++) to[i] = ht_bf16_store(from[i]);
}

/* Writes `count` elements of y or aux, from element `at` on, in the type `dtype`. */
static void put_block(void *to, ht_dtype dtype, int64_t at, const float *from, int64_t count) {
    if (dtype == HT_BF16) round_block((uint16_t *)to + at, from, count);
    else memmove((float *)to + at, from, (size_t)count * sizeof(float));
}

/* Writes `count` neighbouring elements of y and aux, from element `at` on. */
static void finish_run(const ht_product_call *call, const float *sums, int64_t at, int64_t count) {
    enum { BLOCK = 512 };
    float values[BLOCK];
    for (int64_t end = at + count; at < end; at += BLOCK) {
        int64_t some = end - at < BLOCK ? end - at : BLOCK;
        const float *done = call->epilogue == HT_NO_EPILOGUE ? sums + at : values;
        if (call->aux && sums != call->aux)
            put_block(call->aux, call->y_dtype, at, sums + at, some);
        if (call->epilogue == HT_GELU) gelu_block(values, sums + at, some);
        else if (call->epilogue == HT_RELU) relu_block(values, sums + at, some);
        put_block(call->y, call->y_dtype, at, done, some);
    }
}

/* Writes y and aux from the sums, which have the strides of y. */
static void finish(const ht_product_call *call, const float *sums) {
    Runs runs = runs_of(call->rank, call->axes);
    int64_t step = runs.inner.y == 1 ? runs.inner.extent : 1, steps = runs.inner.extent / step;
#pragma omp parallel for schedule(static) if (runs.total * runs.inner.extent > CPU_PARALLEL)
    for (int64_t r = 0; r < runs.total; r++) {
        int64_t at = place_of(r, runs.count, runs.axes).y;
        for (int64_t i = 0; i < steps; i++) finish_run(call, sums, at + i * runs.inner.y, step);
    }
}

enum { SUMMED_TOGETHER = 128 }; // sums that one pass over the summed axes computes

/* The axes of an operand: `kept` axes remain in its sums, `gone` axes are summed over. */
typedef struct Summed {
    int kept_count, gone_count;
    ht_axis kept[HT_MAX_AXES], gone[HT_MAX_AXES];
    int64_t kept_total, gone_total;
} Summed;

static Summed summed_of(const ht_product_call *call) {
    Summed summed = {.kept_total = 1, .gone_total = 1};
    for (int i = 0; i < call->rank; i++) {
        const ht_axis *axis = &call->axes[i];
        if (!(call->sums_of_w ? axis->w : axis->x)) continue;
        *(axis->y ? &summed.kept[summed.kept_count++] : &summed.gone[summed.gone_count++]) = *axis;
        *(axis->y ? &summed.kept_total : &summed.gone_total) *= axis->extent;
    }
    return summed;
}

static int64_t operand_place(const ht_product_call *call, Place at) {
    return call->sums_of_w ? at.w : at.x;
}

/* Add `count` consecutive elements to `count` sums. */
HT_CLONES static void add_floats(double *restrict sum, const float *restrict row, int64_t count) {
    for (int64_t j = 0; j < count; j++) sum[j] += row[j];
}

HT_CLONES static void add_halves(double *restrict sum, const uint16_t *restrict row,
                                 int64_t count) {
    for (int64_t j = 0; j < count; j++) sum[j] += ht_bf16_load(row[j]);
}

static void add_neighbours(const ht_product_call *call, double *sum, int64_t at, int64_t count) {
    const void *from = call->sums_of_w ? call->w : call->x;
    if (call->dtype == HT_BF16) add_halves(sum, (const uint16_t *)from + at, count);
    else add_floats(sum, (const float *)from + at, count);
}

/* Computes the sums [first, first + count). */
static void sum_some(const ht_product_call *call, const Summed *summed, int64_t first,
                     int64_t count) {
    double sum[SUMMED_TOGETHER] = {0};
    int64_t offset[SUMMED_TOGETHER];
    bool neighbours = true;
    for (int64_t j = 0; j < count; j++) {
        offset[j] = operand_place(call, place_of(first + j, summed->kept_count, summed->kept));
        neighbours &= offset[j] == offset[0] + j;
    }
    for (int64_t i = 0; i < summed->gone_total; i++) {
        int64_t row = operand_place(call, place_of(i, summed->gone_count, summed->gone));
        if (neighbours) add_neighbours(call, sum, row + offset[0], count);
        else
            for (int64_t j = 0; j < count; j++) add_neighbours(call, &sum[j], row + offset[j], 1);
    }
    for (int64_t j = 0; j < count; j++)
        call->sums[place_of(first + j, summed->kept_count, summed->kept).b] = (float)sum[j];
}

static void sum_operand(const ht_product_call *call) {
    Summed summed = summed_of(call);
    int64_t blocks = (summed.kept_total + SUMMED_TOGETHER - 1) / SUMMED_TOGETHER;
#pragma omp parallel for schedule(static) if (summed.kept_total * summed.gone_total > CPU_PARALLEL)
    for (int64_t k = 0; k < blocks; k++) {
        int64_t first = k * SUMMED_TOGETHER, rest = summed.kept_total - first;
        sum_some(call, &summed, first, rest < SUMMED_TOGETHER ? rest : SUMMED_TOGETHER);
    }
}

/* Computes y and aux in f32 and rounds them. */
static void compute_sums(const ht_product_call *call) {
    ht_view y = product_view(call, call->y, call->y_dtype, offsetof(ht_axis, y));
    ht_view aux = product_view(call, call->aux, call->y_dtype, offsetof(ht_axis, y));
    Copies copies = {0};
    float *sums = view_target(call->aux ? &aux : &y, "a product", &copies);
    if (!onednn_product(call, sums)) {
        ht_view x = product_view(call, call->x, call->dtype, offsetof(ht_axis, x));
        ht_view w = product_view(call, call->w, call->dtype, offsetof(ht_axis, w));
        ht_view bias = product_view(call, call->bias, call->bias_dtype, offsetof(ht_axis, b));
        const float *left = view_load(&x, "a product", &copies),
                    *right = view_load(&w, "a product", &copies);
        product_f32(sums, left, right, view_load(&bias, "a product", &copies), call->rank,
                    call->axes, call->scale);
    }
    if (sums != call->y || call->epilogue != HT_NO_EPILOGUE || call->aux) finish(call, sums);
    copies_free(&copies);
}

void ht_product(const ht_product_call *call) {
    if (call->rank > HT_MAX_AXES)
        ht_fail("a product over %d axes, more than %d", call->rank, HT_MAX_AXES);
    if (span_of(call, offsetof(ht_axis, y)) == 0) return;
    if (!onednn_product(call, NULL)) compute_sums(call);
    if (call->sums) sum_operand(call);
}
