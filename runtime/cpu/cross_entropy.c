/* The parts of cross-entropy: a row's maximum, and the sum of its exponentials. A vocabulary may be
 * cut (vocabulary parallelism): a rank has the parts of its own columns. In
 * <hetu/ops.h>, the rules row_max and mass (reduction) let all-reduces join the parts. */
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <hetu/vector_math.h>

#include <stdbool.h>
#include <stdlib.h>

enum { IGNORED = -100 }; // PyTorch's ignore_index

HT_CLONES static float row_mass(const float *x, int64_t n, float peak) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += ht_expf(x[i] - peak);
    return sum;
}

HT_CLONES static void mass_backward_row(float *dx, const float *x, int64_t n, float dmass,
                                        float peak) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dx[i] = dmass * ht_expf(x[i] - peak);
}

void ht_row_max_kernel(const ht_call *call) {
    float *peak = cpu_f32(&call->result[0], "row_max");
    Rows x = rows_of(&call->operand[0], "row_max");
    int64_t rows = rows_count(&call->operand[0]), n = x.n;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)n * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) peak[r] = row_peak(row_load(&x, r, scratch), n);
        free(scratch);
    }
}

/* Returns the local column of row r's target class; -1: the target is ignored or elsewhere. */
static int64_t target_column(const ht_view *target, int64_t r, const ht_view *x) {
    int last = x->rank - 1;
    int64_t t = cpu_index(target, r);
    if (t == IGNORED) return -1;
    if (t < 0 || t >= x->global[last])
        ht_fail("target %ld at element %ld is outside the %ld classes", (long)t,
                (long)ht_view_element(target, r), (long)x->global[last]);
    return ht_view_find(x, last, t);
}

/* Computes for each row of logits the sum of exp(logit - peak) (result `first`) and the target's
 * logit (result first + 1). If `find`, first computes each peak, the row's maximum. */
static void mass_of_rows(const ht_call *call, int first, float *peak, bool find) {
    float *mass = cpu_f32(&call->result[first], "cross_entropy"),
          *hit = cpu_f32(&call->result[first + 1], "cross_entropy");
    const ht_view *view = &call->operand[0], *target = &call->operand[1];
    Rows x = rows_of(view, "cross_entropy");
    cpu_need_integers(target, "cross_entropy");
    int64_t rows = rows_count(view), n = x.n;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)n * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            const float *row = row_load(&x, r, scratch);
            int64_t column = target_column(target, r, view);
            if (find) peak[r] = row_peak(row, n);
            mass[r] = row_mass(row, n, peak[r]);
            hit[r] = column < 0 ? 0.0f : row[column];
        }
        free(scratch);
    }
}

void ht_mass_kernel(const ht_call *call) {
    mass_of_rows(call, 0, cpu_f32(&call->operand[2], "cross_entropy"), false);
}

void ht_peak_mass_kernel(const ht_call *call) {
    mass_of_rows(call, 1, cpu_f32(&call->result[0], "cross_entropy"), true);
}

void ht_mass_backward_kernel(const ht_call *call) {
    const float *dmass = cpu_f32(&call->operand[0], "cross_entropy"),
                *dhit = cpu_f32(&call->operand[1], "cross_entropy");
    const ht_view *view = &call->operand[2], *target = &call->operand[3];
    const float *peak = cpu_f32(&call->operand[4], "cross_entropy");
    Rows dx = rows_of(&call->result[0], "cross_entropy"), x = rows_of(view, "cross_entropy");
    int64_t rows = rows_count(view), n = x.n;
#pragma omp parallel if (rows * n > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(2 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *to = row_target(&dx, r, scratch);
            int64_t column = target_column(target, r, view);
            mass_backward_row(to, row_load(&x, r, scratch + n), n, dmass[r], peak[r]);
            if (column >= 0) to[column] += dhit[r];
            row_store(&dx, r, to);
        }
        free(scratch);
    }
}
