/* Layer, root-mean-square and length normalisation over the last dimension. */
#include "cpu/cpu.h"
#include "cpu/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS = 32, MAX_CHUNKS = 64 };

CPU_CLONES static float sum_row(const float *x, int64_t n)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* The sum of (x - shift)^2. */
CPU_CLONES static float sum_squares(const float *x, int64_t n, float shift)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - shift) * (x[i] - shift);
    return sum;
}

/* y = (x - mean) * rstd, times the weight, plus the bias where they are present. */
CPU_CLONES static void scale_row(float *restrict y, const float *restrict x, int64_t n, float mean, float rstd,
                                 const float *restrict weight, const float *restrict bias)
{
    if (weight && bias)
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    else if (weight)
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd * weight[i];
    else if (bias)
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd + bias[i];
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (x[i] - mean) * rstd;
}

/* A row's backward, for any normalisation of the form n(x) = (x - mean) * rstd: with t = dy * weight
 * dx = rstd * (t - m0 - n(x) * m1), where m1 is the mean of t * n(x), and m0 the mean of t where the mean was subtracted (`centred`), else
 * 0. Adds dy * n(x) to dweight, and dy to dbias unless that is NULL. */
typedef struct Row {
    int64_t n;
    float mean, rstd;
    int centred;
    const float *weight; // or NULL
} Row;

CPU_CLONES static void backward_row(float *restrict dx, const float *restrict dy, const float *restrict x, const Row *row)
{
    int64_t n = row->n;
    float mean = row->mean, rstd = row->rstd, m0 = 0, m1 = 0;
    const float *restrict weight = row->weight;
    if (weight) {
#pragma omp simd reduction(+ : m0, m1)
        for (int64_t i = 0; i < n; i++) {
            m0 += dy[i] * weight[i];
            m1 += dy[i] * weight[i] * ((x[i] - mean) * rstd);
        }
    } else {
#pragma omp simd reduction(+ : m0, m1)
        for (int64_t i = 0; i < n; i++) {
            m0 += dy[i];
            m1 += dy[i] * ((x[i] - mean) * rstd);
        }
    }
    m0 = row->centred ? m0 / (float)n : 0.0f;
    m1 /= (float)n;
    if (weight)
        for (int64_t i = 0; i < n; i++)
            dx[i] = rstd * (dy[i] * weight[i] - m0 - (x[i] - mean) * rstd * m1);
    else
        for (int64_t i = 0; i < n; i++)
            dx[i] = rstd * (dy[i] - m0 - (x[i] - mean) * rstd * m1);
}

CPU_CLONES static void add_weight_row(float *restrict dweight, const float *restrict dy, const float *restrict x, int64_t n, float mean,
                                      float rstd)
{
    for (int64_t i = 0; i < n; i++)
        dweight[i] += dy[i] * ((x[i] - mean) * rstd);
}

CPU_CLONES static void add_row(float *restrict to, const float *restrict from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

static int64_t rows_of(const ht_view *x) { return ht_view_count(x, 0, x->rank - 1); }

static int64_t columns_of(const ht_view *x) { return x->extent[x->rank - 1]; }

void ht_layer_norm_kernel(const ht_call *call)
{
    float *y = cpu_f32(&call->result[0], "layer_norm");
    float *mean = call->result[1].data, *rstd = call->result[2].data;
    const float *x = cpu_f32(&call->operand[0], "layer_norm");
    const float *weight = cpu_f32(&call->operand[1], "layer_norm"), *bias = cpu_f32(&call->operand[2], "layer_norm");
    int64_t rows = rows_of(&call->operand[0]), n = columns_of(&call->operand[0]);
    float eps = (float)call->attr[0].f;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        mean[r] = sum_row(x + r * n, n) / (float)n;
        rstd[r] = 1.0f / sqrtf(sum_squares(x + r * n, n, mean[r]) / (float)n + eps);
        scale_row(y + r * n, x + r * n, n, mean[r], rstd[r], weight, bias);
    }
}

void ht_rms_norm_kernel(const ht_call *call)
{
    float *y = cpu_f32(&call->result[0], "rms_norm"), *rstd = call->result[1].data;
    const float *x = cpu_f32(&call->operand[0], "rms_norm"), *weight = cpu_f32(&call->operand[1], "rms_norm");
    int64_t rows = rows_of(&call->operand[0]), n = columns_of(&call->operand[0]);
    float eps = (float)call->attr[0].f;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        rstd[r] = 1.0f / sqrtf(sum_squares(x + r * n, n, 0) / (float)n + eps);
        scale_row(y + r * n, x + r * n, n, 0, rstd[r], weight, NULL);
    }
}

/* What a backward needs: every pointer is of the whole piece; mean and weight may be NULL, dbias too. */
typedef struct Backward {
    int64_t rows, n;
    const float *dy, *x, *mean, *rstd, *weight;
    float *dx, *dweight, *dbias;
} Backward;

/* The rows of one chunk, with its own sums for dweight and dbias. */
static void backward_chunk(const Backward *b, int64_t first, int64_t last, float *dweight, float *dbias)
{
    int64_t n = b->n;
    memset(dweight, 0, (size_t)n * sizeof(float));
    if (dbias)
        memset(dbias, 0, (size_t)n * sizeof(float));
    for (int64_t r = first; r < last; r++) {
        const float *dy = b->dy + r * n, *x = b->x + r * n;
        Row row = {n, b->mean ? b->mean[r] : 0.0f, b->rstd[r], b->mean != NULL, b->weight};
        backward_row(b->dx + r * n, dy, x, &row);
        add_weight_row(dweight, dy, x, n, row.mean, row.rstd);
        if (dbias)
            add_row(dbias, dy, n);
    }
}

/* Adds up the chunks' sums in order. */
static void join_chunks(float *to, const float *parts, int64_t chunks, int64_t n, int64_t pitch)
{
    memset(to, 0, (size_t)n * sizeof(float));
    for (int64_t c = 0; c < chunks; c++)
        add_row(to, parts + c * pitch, n);
}

/* Rows are cut into chunks whose number depends on the number of rows alone, so that sums do not depend on the threads. */
static void backward_all(const Backward *b)
{
    int64_t chunks = (b->rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
    chunks = chunks > MAX_CHUNKS ? MAX_CHUNKS : chunks;
    int64_t pitch = (b->n + 15) / 16 * 16;
    float *parts = cpu_alloc((size_t)(2 * chunks * pitch) * sizeof(float));
    float *bias_parts = b->dbias ? parts + chunks * pitch : NULL;
#pragma omp parallel for schedule(static) if (b->rows * b->n > CPU_PARALLEL)
    for (int64_t c = 0; c < chunks; c++)
        backward_chunk(b, b->rows * c / chunks, b->rows * (c + 1) / chunks, parts + c * pitch, bias_parts ? bias_parts + c * pitch : NULL);
    join_chunks(b->dweight, parts, chunks, b->n, pitch);
    if (b->dbias)
        join_chunks(b->dbias, bias_parts, chunks, b->n, pitch);
    free(parts);
}

void ht_layer_norm_backward_kernel(const ht_call *call)
{
    const ht_view *in = call->operand;
    Backward b = {rows_of(&in[1]),      columns_of(&in[1]),  cpu_f32(&in[0], "layer_norm"), cpu_f32(&in[1], "layer_norm"),
                  in[2].data,           in[3].data,          cpu_f32(&in[4], "layer_norm"), call->result[0].data,
                  call->result[1].data, call->result[2].data};
    backward_all(&b);
}

void ht_rms_norm_backward_kernel(const ht_call *call)
{
    const ht_view *in = call->operand;
    Backward b = {rows_of(&in[1]), columns_of(&in[1]),          cpu_f32(&in[0], "rms_norm"), cpu_f32(&in[1], "rms_norm"), NULL,
                  in[2].data,      cpu_f32(&in[3], "rms_norm"), call->result[0].data,        call->result[1].data,        NULL};
    backward_all(&b);
}

void ht_l2_norm_kernel(const ht_call *call)
{
    float *y = cpu_f32(&call->result[0], "l2_norm"), *rnorm = call->result[1].data;
    const float *x = cpu_f32(&call->operand[0], "l2_norm");
    int64_t rows = rows_of(&call->operand[0]), n = columns_of(&call->operand[0]);
    float eps = (float)call->attr[0].f;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        rnorm[r] = 1.0f / fmaxf(sqrtf(sum_squares(x + r * n, n, 0)), eps);
        scale_row(y + r * n, x + r * n, n, 0, rnorm[r], NULL, NULL);
    }
}

/* dx = rnorm * (dy - y * (dy . y)); where the length was below eps, dx = rnorm * dy. */
CPU_CLONES static void l2_backward_row(float *restrict dx, const float *restrict dy, const float *restrict y, int64_t n, float rnorm,
                                       float eps)
{
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++)
        dot += dy[i] * y[i];
    if (rnorm >= 1.0f / eps)
        dot = 0;
    for (int64_t i = 0; i < n; i++)
        dx[i] = rnorm * (dy[i] - y[i] * dot);
}

void ht_l2_norm_backward_kernel(const ht_call *call)
{
    float *dx = call->result[0].data;
    const float *dy = cpu_f32(&call->operand[0], "l2_norm"), *y = cpu_f32(&call->operand[1], "l2_norm"), *rnorm = call->operand[2].data;
    int64_t rows = rows_of(&call->operand[0]), n = columns_of(&call->operand[0]);
    float eps = (float)call->attr[0].f;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        l2_backward_row(dx + r * n, dy + r * n, y + r * n, n, rnorm[r], eps);
}
