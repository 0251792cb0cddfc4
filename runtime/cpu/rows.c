#include "cpu/rows.h"

#include "cpu/cpu.h"

#include <hetu/rt.h>

#include <math.h>
#include <stdlib.h>

enum { RUN = 4096 }; // elements that one thread converts at a time

HT_CLONES static void widen_run(float *restrict to, const uint16_t *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = ht_bf16_load(from[i]);
}

HT_CLONES static void narrow_run(uint16_t *restrict to, const float *restrict from, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = ht_bf16_store(from[i]);
}

HT_CLONES static float peak_of(const float *x, int64_t n) {
    float peak = -INFINITY;
    int nan = 0;
#pragma omp simd reduction(max : peak) reduction(| : nan)
    for (int64_t i = 0; i < n; i++) {
        peak = x[i] > peak ? x[i] : peak;
        nan |= x[i] != x[i];
    }
    return nan ? NAN : peak;
}

float row_peak(const float *x, int64_t n) { return peak_of(x, n); }

Rows rows_of(const ht_view *view, const char *operator) {
    if (view->data && view->dtype != HT_F32 && view->dtype != HT_BF16)
        ht_fail("%s computes on f32 and bf16 only; cast the operand first", operator);
    return (Rows){view->data, view->dtype, view->rank > 0 ? view->extent[view->rank - 1] : 1};
}

int64_t rows_count(const ht_view *view) { return ht_view_count(view, 0, view->rank - 1); }

const float *row_load(const Rows *rows, int64_t r, float *scratch) {
    if (!rows->data || rows->dtype == HT_F32)
        return rows->data ? (const float *)rows->data + r * rows->n : NULL;
    widen_run(scratch, (const uint16_t *)rows->data + r * rows->n, rows->n);
    return scratch;
}

float *row_target(const Rows *rows, int64_t r, float *scratch) {
    return rows->dtype == HT_F32 ? (float *)rows->data + r * rows->n : scratch;
}

void row_store(const Rows *rows, int64_t r, const float *row) {
    if (rows->dtype == HT_BF16) narrow_run((uint16_t *)rows->data + r * rows->n, row, rows->n);
}

/* Returns the number of elements in run r of a tensor of `count` elements. */
static int64_t run_length(int64_t r, int64_t count) {
    return count - r * RUN < RUN ? count - r * RUN : RUN;
}

float *view_target(const ht_view *view, const char *operator, Copies * copies) {
    float *data = rows_of(view, operator).data;
    if (!data || view->dtype == HT_F32) return data;
    return copies->at[copies->count++] = cpu_alloc((size_t)cpu_count(view) * sizeof(float));
}

const float *view_load(const ht_view *view, const char *operator, Copies * copies) {
    float *to = view_target(view, operator, copies);
    if (to == view->data) return to;
    int64_t count = cpu_count(view), runs = (count + RUN - 1) / RUN;
#pragma omp parallel for schedule(static) if (runs > 1)
    for (int64_t r = 0; r < runs; r++)
        widen_run(to + r * RUN, (const uint16_t *)view->data + r * RUN, run_length(r, count));
    return to;
}

void view_store(const ht_view *view, const float *from) {
    if (view->dtype != HT_BF16) return;
    int64_t count = cpu_count(view), runs = (count + RUN - 1) / RUN;
#pragma omp parallel for schedule(static) if (runs > 1)
    for (int64_t r = 0; r < runs; r++)
        narrow_run((uint16_t *)view->data + r * RUN, from + r * RUN, run_length(r, count));
}

float *view_target_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                        int64_t *pitch) {
    *pitch =
        view->dtype == HT_F32 ? ht_view_pitch(view, first) : ht_view_count(view, first, view->rank);
    return view_target(view, operator, copies);
}

const float *view_load_rows(const ht_view *view, int first, const char *operator, Copies * copies,
                            int64_t *pitch) {
    int64_t rows = ht_view_count(view, 0, first), n = ht_view_count(view, first, view->rank),
            apart = ht_view_pitch(view, first);
    float *to = view_target_rows(view, first, operator, copies, pitch);
    if (to == view->data) return to;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < rows; r++)
        widen_run(to + r * n, (const uint16_t *)view->data + r * apart, n);
    return to;
}

void view_store_rows(const ht_view *view, int first, const float *from) {
    int64_t rows = ht_view_count(view, 0, first), n = ht_view_count(view, first, view->rank),
            apart = ht_view_pitch(view, first);
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t r = 0; r < (view->dtype == HT_BF16 ? rows : 0); r++)
        narrow_run((uint16_t *)view->data + r * apart, from + r * n, n);
}

void ht_narrow(void *to, const void *from, int64_t count) {
    int64_t runs = (count + RUN - 1) / RUN;
#pragma omp parallel for schedule(static) if (runs > 1)
    for (int64_t r = 0; r < runs; r++)
        narrow_run((uint16_t *)to + r * RUN, (const float *)from + r * RUN, run_length(r, count));
}

void copies_free(Copies *copies) {
    while (copies->count > 0) free(copies->at[--copies->count]);
}
