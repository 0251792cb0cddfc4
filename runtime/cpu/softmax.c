/* Softmax over rows. */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <hetu/vector_math.h>

#include <stdlib.h>

HT_CLONES static void softmax_row(float *restrict y, const float *restrict x, int64_t n,
                                  float peak) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        y[i] = ht_expf(x[i] - peak);
        sum += y[i];
    }
    float scale = 1.0f / sum;
    for (int64_t i = 0; i < n; i++) y[i] *= scale;
}

HT_CLONES static void softmax_backward_row(float *restrict dx, const float *restrict dy,
                                           const float *restrict y, int64_t n) {
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++) dot += dy[i] * y[i];
    for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (dy[i] - dot);
}

void ht_softmax_kernel(const ht_call *call) {
    Rows y = rows_of(&call->result[0], "softmax"), x = rows_of(&call->operand[0], "softmax");
    int64_t rows = rows_count(&call->operand[0]), n = x.n;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(2 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            const float *from = row_load(&x, r, scratch);
            float *to = row_target(&y, r, scratch + n);
            softmax_row(to, from, n, row_peak(from, n));
            row_store(&y, r, to);
        }
        free(scratch);
    }
}

void ht_softmax_backward_kernel(const ht_call *call) {
    Rows dx = rows_of(&call->result[0], "softmax_backward");
    Rows dy = rows_of(&call->operand[0], "softmax_backward"),
         y = rows_of(&call->operand[1], "softmax_backward");
    int64_t rows = rows_count(&call->operand[0]), n = dy.n;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(3 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *to = row_target(&dx, r, scratch);
            softmax_backward_row(to, row_load(&dy, r, scratch + n),
                                 row_load(&y, r, scratch + 2 * n), n);
            row_store(&dx, r, to);
        }
        free(scratch);
    }
}
