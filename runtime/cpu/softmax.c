/* Softmax over rows, and the pieces of cross-entropy: a row's maximum, and the sum of its exponentials. */
#include "cpu/cpu.h"
#include "cpu/kernels.h"

#include <hetu/vector_math.h>

#include <math.h>

enum { IGNORED = -100 }; // PyTorch's ignore_index

CPU_CLONES static float row_peak(const float *x, int64_t n)
{
    float peak = -INFINITY;
#pragma omp simd reduction(max : peak)
    for (int64_t i = 0; i < n; i++)
        peak = x[i] > peak ? x[i] : peak;
    return peak;
}

CPU_CLONES static void softmax_row(float *restrict y, const float *restrict x, int64_t n, float peak)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = ht_expf(x[i] - peak);
        sum += y[i];
    }
    float scale = 1.0f / sum;
    for (int64_t i = 0; i < n; i++)
        y[i] *= scale;
}

CPU_CLONES static void softmax_backward_row(float *restrict dx, const float *restrict dy, const float *restrict y, int64_t n)
{
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++)
        dot += dy[i] * y[i];
    for (int64_t i = 0; i < n; i++)
        dx[i] = y[i] * (dy[i] - dot);
}

CPU_CLONES static float row_mass(const float *x, int64_t n, float peak)
{
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += ht_expf(x[i] - peak);
    return sum;
}

CPU_CLONES static void mass_backward_row(float *restrict dx, const float *restrict x, int64_t n, float dmass, float peak)
{
    for (int64_t i = 0; i < n; i++)
        dx[i] = dmass * ht_expf(x[i] - peak);
}

/* The rows of a view whose last dimension holds the columns. */
static int64_t rows_of(const ht_view *x) { return ht_view_count(x, 0, x->rank - 1); }

void ht_softmax_kernel(const ht_call *call)
{
    float *y = cpu_f32(&call->result[0], "softmax");
    const float *x = cpu_f32(&call->operand[0], "softmax");
    int64_t rows = rows_of(&call->operand[0]), n = call->operand[0].extent[call->operand[0].rank - 1];
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        softmax_row(y + r * n, x + r * n, n, row_peak(x + r * n, n));
}

void ht_softmax_backward_kernel(const ht_call *call)
{
    float *dx = cpu_f32(&call->result[0], "softmax_backward");
    const float *dy = cpu_f32(&call->operand[0], "softmax_backward"), *y = cpu_f32(&call->operand[1], "softmax_backward");
    int64_t rows = rows_of(&call->operand[0]), n = call->operand[0].extent[call->operand[0].rank - 1];
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        softmax_backward_row(dx + r * n, dy + r * n, y + r * n, n);
}

void ht_row_max_kernel(const ht_call *call)
{
    float *peak = cpu_f32(&call->result[0], "row_max");
    const float *x = cpu_f32(&call->operand[0], "row_max");
    int64_t rows = rows_of(&call->operand[0]), n = call->operand[0].extent[call->operand[0].rank - 1];
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        peak[r] = row_peak(x + r * n, n);
}

/* The column that the target of row r names, counted from this piece's first; -1 where it is ignored or of another piece. */
static int64_t target_column(const ht_view *target, int64_t r, const ht_view *x)
{
    int last = x->rank - 1;
    int64_t t = cpu_index(target, r);
    if (t == IGNORED)
        return -1;
    if (t < 0 || t >= x->global[last])
        ht_fail("target %ld at element %ld is outside the %ld classes", (long)t, (long)r, (long)x->global[last]);
    int64_t column = t - x->offset[last];
    return column >= 0 && column < x->extent[last] ? column : -1;
}

void ht_mass_kernel(const ht_call *call)
{
    float *mass = cpu_f32(&call->result[0], "cross_entropy"), *hit = cpu_f32(&call->result[1], "cross_entropy");
    const ht_view *x = &call->operand[0], *target = &call->operand[1];
    const float *data = cpu_f32(x, "cross_entropy"), *peak = cpu_f32(&call->operand[2], "cross_entropy");
    cpu_need_integers(target, "cross_entropy");
    int64_t rows = rows_of(x), n = x->extent[x->rank - 1];
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        int64_t column = target_column(target, r, x);
        mass[r] = row_mass(data + r * n, n, peak[r]);
        hit[r] = column < 0 ? 0.0f : data[r * n + column];
    }
}

void ht_mass_backward_kernel(const ht_call *call)
{
    float *dx = cpu_f32(&call->result[0], "cross_entropy");
    const float *dmass = cpu_f32(&call->operand[0], "cross_entropy"), *dhit = cpu_f32(&call->operand[1], "cross_entropy");
    const ht_view *x = &call->operand[2], *target = &call->operand[3];
    const float *data = cpu_f32(x, "cross_entropy"), *peak = cpu_f32(&call->operand[4], "cross_entropy");
    int64_t rows = rows_of(x), n = x->extent[x->rank - 1];
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++) {
        int64_t column = target_column(target, r, x);
        mass_backward_row(dx + r * n, data + r * n, n, dmass[r], peak[r]);
        if (column >= 0)
            dx[r * n + column] += dhit[r];
    }
}
