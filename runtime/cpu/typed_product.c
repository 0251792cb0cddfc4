/* ht_product for operands and results of any type: bf16 is widened to f32 on the way in and rounded on the way out. */
#include "device/contraction.h"
#include "cpu/cpu.h"
#include "cpu/product.h"
#include "cpu/rows.h"

#include <hetu/rt.h>
#include <hetu/vector_math.h>

#include <stddef.h>
#include <string.h>

/* Elements from the first to the last that the axes reach in the tensor whose strides stand at `field` of an axis. */
static int64_t span_of(const ht_product_call *call, size_t field)
{
    int64_t span = 1;
    for (int i = 0; i < call->rank; i++) {
        int64_t stride = *(const int64_t *)((const char *)&call->axes[i] + field);
        if (stride && call->axes[i].extent == 0)
            return 0;
        span += (call->axes[i].extent - 1) * stride;
    }
    return span;
}

/* What the axes reach in a tensor, as one row. */
static ht_view span_view(const ht_product_call *call, const void *data, ht_dtype dtype, size_t field)
{
    return (ht_view){.data = (void *)data, .dtype = dtype, .rank = 1, .extent = {span_of(call, field)}};
}

/* gelu as <hetu/ops.h> declares it, by the tanh approximation. */
static inline float gelu(float x) { return 0.5f * x * (1 + ht_tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }

CPU_CLONES static void gelu_block(float *restrict to, const float *restrict from, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = gelu(from[i]);
}

CPU_CLONES static void relu_block(float *restrict to, const float *restrict from, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = from[i] <= 0 ? 0 : from[i];
}

CPU_CLONES static void round_block(uint16_t *restrict to, const float *restrict from, int64_t count)
{
#pragma omp simd
    for (int64_t i = 0; i < count; i++)
        to[i] = ht_bf16_store(from[i]);
}

/* Writes elements of y or aux from element `at` on. */
static void put_block(void *to, ht_dtype dtype, int64_t at, const float *from, int64_t count)
{
    if (dtype == HT_BF16)
        round_block((uint16_t *)to + at, from, count);
    else
        memmove((float *)to + at, from, (size_t)count * sizeof(float));
}

/* `count` neighbouring elements of y and aux from element `at` on. */
static void finish_run(const ht_product_call *call, const float *sums, int64_t at, int64_t count)
{
    enum { BLOCK = 512 };
    float values[BLOCK];
    for (int64_t end = at + count; at < end; at += BLOCK) {
        int64_t some = end - at < BLOCK ? end - at : BLOCK;
        const float *done = call->epilogue == HT_NO_EPILOGUE ? sums + at : values;
        if (call->aux)
            put_block(call->aux, call->y_dtype, at, sums + at, some);
        if (call->epilogue == HT_GELU)
            gelu_block(values, sums + at, some);
        else if (call->epilogue == HT_RELU)
            relu_block(values, sums + at, some);
        put_block(call->y, call->y_dtype, at, done, some);
    }
}

/* Writes y and aux from the sums, which lie as y does. */
static void finish(const ht_product_call *call, const float *sums)
{
    Runs runs = runs_of(call->rank, call->axes);
    int64_t step = runs.inner.y == 1 ? runs.inner.extent : 1, steps = runs.inner.extent / step;
#pragma omp parallel for schedule(static) if (runs.total * runs.inner.extent > CPU_PARALLEL)
    for (int64_t r = 0; r < runs.total; r++) {
        int64_t at = place_of(r, runs.count, runs.axes).y;
        for (int64_t i = 0; i < steps; i++)
            finish_run(call, sums, at + i * runs.inner.y, step);
    }
}

void ht_product(const ht_product_call *call)
{
    if (call->rank > HT_MAX_AXES)
        ht_fail("a product over %d axes, more than %d", call->rank, HT_MAX_AXES);
    ht_view y = span_view(call, call->y, call->y_dtype, offsetof(ht_axis, y));
    ht_view x = span_view(call, call->x, call->dtype, offsetof(ht_axis, x));
    ht_view w = span_view(call, call->w, call->dtype, offsetof(ht_axis, w));
    ht_view bias = span_view(call, call->bias, call->bias_dtype, offsetof(ht_axis, b));
    if (y.extent[0] == 0)
        return;
    Copies copies = {0};
    float *sums = view_target(&y, "a product", &copies);
    product_f32(sums, view_load(&x, "a product", &copies), view_load(&w, "a product", &copies), view_load(&bias, "a product", &copies),
                call->rank, call->axes, call->scale);
    if (sums != call->y || call->epilogue != HT_NO_EPILOGUE || call->aux)
        finish(call, sums);
    copies_free(&copies);
}
