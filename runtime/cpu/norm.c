/* Layer norm, RMS norm and L2 norm over the last dimension. */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Backward works on chunks of CHUNK_ROWS rows, but on at most MAX_CHUNKS chunks. */
enum { CHUNK_ROWS = 32, MAX_CHUNKS = 64 };

HT_CLONES static float sum_row(const float *x, int64_t n) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* Returns the sum of (x - shift)^2 over a row. */
HT_CLONES static float sum_squares(const float *x, int64_t n, float shift) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += (x[i] - shift) * (x[i] - shift);
    return sum;
}

/* A row of a normalisation n(x) = (x - mean) * rstd. */
typedef struct Row {
    int64_t n;
    float mean, rstd;
    bool centred;               // the mean is subtracted
    const float *weight, *bias; // n elements each; NULL: no weight or no bias
} Row;

/* Computes y = n(x) * weight + bias. */
HT_CLONES static void scale_row(float *restrict y, const float *restrict x, const Row *row) {
    int64_t n = row->n;
    float mean = row->mean, rstd = row->rstd;
    const float *restrict weight = row->weight, *restrict bias = row->bias;
    if (weight && bias)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * weight[i] + bias[i];
    else if (weight)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd * weight[i];
    else if (bias)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd + bias[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * rstd;
}

/* Computes dx = rstd * (t - m0 - n(x) * m1) for t = dy * weight. m1 is the mean of t * n(x). m0 is
 * the mean of t if the row is centred, else 0. */
HT_CLONES static void backward_row(float *restrict dx, const float *restrict dy,
                                   const float *restrict x, const Row *row) {
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
        for (int64_t i = 0; i < n; i++) dx[i] = rstd * (dy[i] - m0 - (x[i] - mean) * rstd * m1);
}

/* Adds dy * n(x) to dweight. */
HT_CLONES static void add_weight_row(float *restrict dweight, const float *restrict dy,
                                     const float *restrict x, const Row *row) {
    int64_t n = row->n;
    float mean = row->mean, rstd = row->rstd;
    for (int64_t i = 0; i < n; i++) dweight[i] += dy[i] * ((x[i] - mean) * rstd);
}

HT_CLONES static void add_row(float *restrict to, const float *restrict from, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] += from[i];
}

/* Operands and results of forward. mean is NULL if it is not subtracted (RMS norm); weight and bias
 * are optional vectors. */
typedef struct Forward {
    int64_t rows;
    Rows y, x, weight, bias;
    float *mean, *rstd;
    float eps;
    int length; // rstd is 1 / max(length, eps) instead of 1 / sqrt(mean of squares + eps)
} Forward;

/* Computes mean, rstd and result of row r. `row` has the weight and the bias. */
static void forward_row(const Forward *f, int64_t r, float *to, const float *from, Row row) {
    int64_t n = f->x.n;
    float mean = f->mean ? sum_row(from, n) / (float)n : 0.0f, squares = sum_squares(from, n, mean);
    float length = f->length ? sqrtf(squares) : sqrtf(squares / (float)n + f->eps);
    float rstd = 1.0f / (f->length && length < f->eps ? f->eps : length);
    if (f->mean) f->mean[r] = mean;
    f->rstd[r] = rstd;
    row.n = n;
    row.mean = mean;
    row.rstd = rstd;
    scale_row(to, from, &row);
}

static void forward_all(const Forward *f) {
    int64_t n = f->x.n;
    float *vectors = cpu_alloc((size_t)(2 * n) * sizeof(float));
    Row row = {.weight = row_load(&f->weight, 0, vectors),
               .bias = row_load(&f->bias, 0, vectors + n)};
#pragma omp parallel if (f->rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(2 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < f->rows; r++) {
            float *to = row_target(&f->y, r, scratch);
            forward_row(f, r, to, row_load(&f->x, r, scratch + n), row);
            row_store(&f->y, r, to);
        }
        free(scratch);
    }
    free(vectors);
}

void ht_layer_norm_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Forward f = {.rows = rows_count(&in[0]),
                 .y = rows_of(&out[0], "layer_norm"),
                 .x = rows_of(&in[0], "layer_norm"),
                 .weight = rows_of(&in[1], "layer_norm"),
                 .bias = rows_of(&in[2], "layer_norm"),
                 .mean = cpu_f32(&out[1], "layer_norm"),
                 .rstd = cpu_f32(&out[2], "layer_norm"),
                 .eps = (float)call->attr[0].f};
    forward_all(&f);
}

void ht_rms_norm_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Forward f = {.rows = rows_count(&in[0]),
                 .y = rows_of(&out[0], "rms_norm"),
                 .x = rows_of(&in[0], "rms_norm"),
                 .weight = rows_of(&in[1], "rms_norm"),
                 .rstd = cpu_f32(&out[1], "rms_norm"),
                 .eps = (float)call->attr[0].f};
    forward_all(&f);
}

void ht_l2_norm_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Forward f = {.rows = rows_count(&in[0]),
                 .y = rows_of(&out[0], "l2_norm"),
                 .x = rows_of(&in[0], "l2_norm"),
                 .rstd = cpu_f32(&out[1], "l2_norm"),
                 .eps = (float)call->attr[0].f,
                 .length = 1};
    forward_all(&f);
}

/* Operands and results of backward. mean is NULL for RMS norm; weight is an optional vector; dbias
 * may be NULL. */
typedef struct Backward {
    int64_t rows;
    Rows dx, dy, x, weight, more; // more: rows to add to dx; may be absent
    const float *mean, *rstd;
    float *dweight, *dbias;
} Backward;

/* Rows [first, last), and memory for their sums of dweight and dbias (NULL: no bias). */
typedef struct Chunk {
    int64_t first, last;
    float *dweight, *dbias;
} Chunk;

/* Computes dx of one chunk of rows, and the chunk's partial sums of dweight and dbias. */
static void backward_chunk(const Backward *b, const float *weight, Chunk chunk) {
    int64_t n = b->x.n;
    float *dweight = chunk.dweight, *dbias = chunk.dbias;
    float *scratch = cpu_alloc((size_t)(4 * n) * sizeof(float));
    memset(dweight, 0, (size_t)n * sizeof(float));
    if (dbias) memset(dbias, 0, (size_t)n * sizeof(float));
    for (int64_t r = chunk.first; r < chunk.last; r++) {
        const float *dy = row_load(&b->dy, r, scratch), *x = row_load(&b->x, r, scratch + n);
        float *dx = row_target(&b->dx, r, scratch + 2 * n);
        Row row = {n, b->mean ? b->mean[r] : 0.0f, b->rstd[r], b->mean != NULL, weight, NULL};
        add_weight_row(dweight, dy, x, &row);
        if (dbias) add_row(dbias, dy, n);
        backward_row(dx, dy, x, &row);
        if (b->more.data) add_row(dx, row_load(&b->more, r, scratch + 3 * n), n);
        row_store(&b->dx, r, dx);
    }
    free(scratch);
}

/* Sums the chunks' partial sums, `pitch` elements apart, into `to`, in the order of the chunks. */
static void join_chunks(float *to, const float *parts, int64_t chunks, int64_t n, int64_t pitch) {
    memset(to, 0, (size_t)n * sizeof(float));
    for (int64_t c = 0; c < chunks; c++) add_row(to, parts + c * pitch, n);
}

/* Computes all gradients in chunks by rows: results do not depend on the number of threads. */
static void backward_all(const Backward *b) {
    int64_t chunks = (b->rows + CHUNK_ROWS - 1) / CHUNK_ROWS, n = b->x.n;
    chunks = chunks > MAX_CHUNKS ? MAX_CHUNKS : chunks;
    int64_t pitch = (n + 15) / 16 * 16;
    float *parts = cpu_alloc((size_t)((2 * chunks + 1) * pitch) * sizeof(float));
    float *bias_parts = b->dbias ? parts + chunks * pitch : NULL;
    const float *weight = row_load(&b->weight, 0, parts + 2 * chunks * pitch);
#pragma omp parallel for schedule(static) if (b->rows * n > CPU_PARALLEL)
    for (int64_t c = 0; c < chunks; c++)
        backward_chunk(b, weight,
                       (Chunk){b->rows * c / chunks, b->rows * (c + 1) / chunks, parts + c * pitch,
                               bias_parts ? bias_parts + c * pitch : NULL});
    join_chunks(b->dweight, parts, chunks, n, pitch);
    if (b->dbias) join_chunks(b->dbias, bias_parts, chunks, n, pitch);
    free(parts);
}

void ht_layer_norm_backward_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {.rows = rows_count(&in[1]),
                  .dx = rows_of(&out[0], "layer_norm"),
                  .dy = rows_of(&in[0], "layer_norm"),
                  .x = rows_of(&in[1], "layer_norm"),
                  .weight = rows_of(&in[4], "layer_norm"),
                  .more = rows_of(&in[5], "layer_norm"),
                  .mean = cpu_f32(&in[2], "layer_norm"),
                  .rstd = cpu_f32(&in[3], "layer_norm"),
                  .dweight = cpu_f32(&out[1], "layer_norm"),
                  .dbias = cpu_f32(&out[2], "layer_norm")};
    backward_all(&b);
}

void ht_rms_norm_backward_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {.rows = rows_count(&in[1]),
                  .dx = rows_of(&out[0], "rms_norm"),
                  .dy = rows_of(&in[0], "rms_norm"),
                  .x = rows_of(&in[1], "rms_norm"),
                  .weight = rows_of(&in[3], "rms_norm"),
                  .more = rows_of(&in[4], "rms_norm"),
                  .rstd = cpu_f32(&in[2], "rms_norm"),
                  .dweight = cpu_f32(&out[1], "rms_norm")};
    backward_all(&b);
}

/* Computes dx = rnorm * (dy - y * (dy . y)), or rnorm * dy if `clamped`; rnorm: row->rstd. */
HT_CLONES static void l2_backward_row(float *restrict dx, const float *restrict dy,
                                      const float *restrict y, const Row *row, bool clamped) {
    int64_t n = row->n;
    float rnorm = row->rstd;
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++) dot += dy[i] * y[i];
    if (clamped) dot = 0;
    for (int64_t i = 0; i < n; i++) dx[i] = rnorm * (dy[i] - y[i] * dot);
}

void ht_l2_norm_backward_kernel(const ht_call *call) {
    Rows dx = rows_of(&call->result[0], "l2_norm");
    Rows dy = rows_of(&call->operand[0], "l2_norm"), y = rows_of(&call->operand[1], "l2_norm");
    const float *rnorm = cpu_f32(&call->operand[2], "l2_norm");
    int64_t rows = rows_count(&call->operand[0]), n = dy.n;
    float eps = (float)call->attr[0].f;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(3 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *to = row_target(&dx, r, scratch);
            Row row = {.n = n, .rstd = rnorm[r]};
            l2_backward_row(to, row_load(&dy, r, scratch + n), row_load(&y, r, scratch + 2 * n),
                            &row, rnorm[r] >= 1.0f / eps);
            row_store(&dx, r, to);
        }
        free(scratch);
    }
}
