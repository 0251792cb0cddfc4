/* Contractions in f32 by BLAS: axes are merged, one of each kind goes to sgemm, the others are loops around it. */
#include "cpu/axes.h"
#include "cpu/cpu.h"

#include <cblas.h>
#include <omp.h>
#include <string.h>

/* Tensors of an axis, as bits. */
enum { IN_Y = 1, IN_X = 2, IN_W = 4, KIND_M = IN_Y | IN_X, KIND_N = IN_Y | IN_W, KIND_K = IN_X | IN_W };

/* Multiplications below which one sgemm is not worth several threads. */
static const double SMALL = 4e6;

typedef struct Product {
    int rank;
    ht_axis axes[HT_MAX_AXES];
    float scale;
    int m, n, k; // axes given to sgemm; -1: none of that kind
    int outer_count, sum_count;
    ht_axis outer[HT_MAX_AXES], sum[HT_MAX_AXES]; // loops around sgemm: over elements of y, and over further summed axes
    int64_t outer_total, sum_total;
} Product;

static int axis_kind(const ht_axis *a) { return (a->y ? IN_Y : 0) | (a->x ? IN_X : 0) | (a->w ? IN_W : 0); }

/* Whether the two axes are one axis of extent a*b, a the major one, in every tensor. */
static int axes_merge(const ht_axis *a, const ht_axis *b)
{
    return a->y == b->y * b->extent && a->x == b->x * b->extent && a->w == b->w * b->extent && a->b == b->b * b->extent;
}

/* Merges one pair of axes if there is one. */
static int merge_once(Product *p)
{
    for (int i = 0; i < p->rank; i++)
        for (int j = 0; j < p->rank; j++)
            if (i != j && axes_merge(&p->axes[i], &p->axes[j])) {
                int64_t extent = p->axes[i].extent * p->axes[j].extent;
                p->axes[i] = p->axes[j];
                p->axes[i].extent = extent;
                p->axes[j] = p->axes[--p->rank];
                return 1;
            }
    return 0;
}

static void take_axes(Product *p, int rank, const ht_axis *axes)
{
    p->rank = 0;
    for (int i = 0; i < rank; i++)
        if (axes[i].extent != 1)
            p->axes[p->rank++] = axes[i];
    while (merge_once(p))
        continue;
}

/* Whether a matrix with these strides along its two axes is one for sgemm: one stride is 1, and the other at least the first axis's extent.
 * A vector always is. */
static int matrix_fits(const ht_axis *a, int64_t sa, const ht_axis *b, int64_t sb)
{
    if (!a || !b)
        return 1;
    return (sb == 1 && sa >= b->extent) || (sa == 1 && sb >= a->extent);
}

static const ht_axis *axis_at(const Product *p, int i) { return i < 0 ? NULL : &p->axes[i]; }

static int choice_fits(const Product *p, int im, int in, int ik)
{
    const ht_axis *m = axis_at(p, im), *n = axis_at(p, in), *k = axis_at(p, ik);
    return matrix_fits(m, m ? m->y : 0, n, n ? n->y : 0) && matrix_fits(m, m ? m->x : 0, k, k ? k->x : 0) &&
           matrix_fits(k, k ? k->w : 0, n, n ? n->w : 0);
}

static double choice_size(const Product *p, int im, int in, int ik)
{
    double m = im < 0 ? 1 : (double)p->axes[im].extent, n = in < 0 ? 1 : (double)p->axes[in].extent,
           k = ik < 0 ? 1 : (double)p->axes[ik].extent;
    return m * n * k;
}

/* Picks the axes whose sgemm is largest; all -1 when none fits, or when it were a dot product. */
static void choose_axes(Product *p)
{
    double best = 1;
    p->m = p->n = p->k = -1;
    for (int m = -1; m < p->rank; m++)
        for (int n = -1; n < p->rank; n++)
            for (int k = -1; k < p->rank; k++) {
                if ((m >= 0 && axis_kind(&p->axes[m]) != KIND_M) || (n >= 0 && axis_kind(&p->axes[n]) != KIND_N) ||
                    (k >= 0 && axis_kind(&p->axes[k]) != KIND_K) || choice_size(p, m, n, k) <= best || !choice_fits(p, m, n, k))
                    continue;
                best = choice_size(p, m, n, k);
                p->m = m;
                p->n = n;
                p->k = k;
            }
    if (p->m < 0 && p->n < 0)
        p->k = -1;
}

static void split_loops(Product *p)
{
    p->outer_count = p->sum_count = 0;
    p->outer_total = p->sum_total = 1;
    for (int i = 0; i < p->rank; i++) {
        const ht_axis *a = &p->axes[i];
        if (i == p->m || i == p->n || i == p->k)
            continue;
        if (a->y) {
            p->outer[p->outer_count++] = *a;
            p->outer_total *= a->extent;
        } else {
            p->sum[p->sum_count++] = *a;
            p->sum_total *= a->extent;
        }
    }
}

/* A matrix with rows along `a`: whether sgemm must transpose it, and its leading dimension. */
static CBLAS_TRANSPOSE matrix_form(const ht_axis *a, int64_t sa, const ht_axis *b, int64_t sb, blasint *lead)
{
    int transposed = b && (a ? sb != 1 || sa < b->extent : sb != 1);
    if (transposed)
        *lead = (blasint)sb;
    else
        *lead = (blasint)(a ? sa : b ? b->extent : 1);
    return transposed ? CblasTrans : CblasNoTrans;
}

/* y (m, n) = scale * x (m, k) w (k, n) + beta * y for the chosen axes. */
static void multiply(const Product *p, float *y, const float *x, const float *w, float beta)
{
    const ht_axis *m = axis_at(p, p->m), *n = axis_at(p, p->n), *k = axis_at(p, p->k);
    blasint em = m ? (blasint)m->extent : 1, en = n ? (blasint)n->extent : 1, ek = k ? (blasint)k->extent : 1, ldx, ldw, ldy;
    CBLAS_TRANSPOSE tx = matrix_form(m, m ? m->x : 0, k, k ? k->x : 0, &ldx);
    CBLAS_TRANSPOSE tw = matrix_form(k, k ? k->w : 0, n, n ? n->w : 0, &ldw);
    if (matrix_form(m, m ? m->y : 0, n, n ? n->y : 0, &ldy) == CblasNoTrans)
        cblas_sgemm(CblasRowMajor, tx, tw, em, en, ek, p->scale, x, ldx, w, ldw, beta, y, ldy);
    else
        cblas_sgemm(CblasRowMajor, tw == CblasTrans ? CblasNoTrans : CblasTrans, tx == CblasTrans ? CblasNoTrans : CblasTrans, en, em, ek,
                    p->scale, w, ldw, x, ldx, beta, y, ldy);
}

/* The sum of products over the summed axes for one element of y. */
static float dot(const Product *p, const float *x, const float *w)
{
    const ht_axis *inner = &p->sum[p->sum_count - 1];
    int64_t runs = p->sum_total / inner->extent;
    float total = 0;
    for (int64_t r = 0; r < runs; r++) {
        Place at = place_of(r, p->sum_count - 1, p->sum);
        const float *a = x + at.x, *b = w + at.w;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < inner->extent; i++)
            sum += a[i * inner->x] * b[i * inner->w];
        total += sum;
    }
    return total;
}

/* One iteration of the outer loops where sgemm serves; y holds the bias already when `biased`. */
static void run_outer(const Product *p, float *y, const float *x, const float *w, int biased)
{
    for (int64_t s = 0; s < p->sum_total; s++) {
        Place at = place_of(s, p->sum_count, p->sum);
        multiply(p, y, x + at.x, w + at.w, biased || s > 0 ? 1.0f : 0.0f);
    }
}

static void run_blas(const Product *p, float *y, const float *x, const float *w, int biased)
{
    int parallel = p->outer_total > 1 && choice_size(p, p->m, p->n, p->k) * (double)p->sum_total < SMALL;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t i = 0; i < p->outer_total; i++) {
        Place at = place_of(i, p->outer_count, p->outer);
        run_outer(p, y + at.y, x + at.x, w + at.w, biased);
    }
}

static void run_plain(const Product *p, float *y, const float *x, const float *w, int biased)
{
#pragma omp parallel for schedule(static) if (p->outer_total * p->sum_total > CPU_PARALLEL)
    for (int64_t i = 0; i < p->outer_total; i++) {
        Place at = place_of(i, p->outer_count, p->outer);
        float sum = p->sum_count ? dot(p, x + at.x, w + at.w) : x[at.x] * w[at.w];
        y[at.y] = p->scale * sum + (biased ? y[at.y] : 0.0f);
    }
}

/* A run of `n` elements of y from the bias, or zeros. */
static void bias_run(float *y, int64_t step, const float *bias, int64_t bias_step, int64_t n)
{
    if (step == 1 && bias && bias_step == 1)
        memcpy(y, bias, (size_t)n * sizeof(float));
    else
        for (int64_t i = 0; i < n; i++)
            y[i * step] = bias ? bias[i * bias_step] : 0.0f;
}

Runs runs_of(int rank, const ht_axis *axes)
{
    Runs runs = {.inner = {1, 1, 0, 0, 0}, .total = 1};
    for (int i = 0; i < rank; i++)
        if (axes[i].y && axes[i].extent != 1)
            runs.axes[runs.count++] = axes[i];
    for (int i = 1; i < runs.count; i++) // the smallest stride last
        if (runs.axes[i].y > runs.axes[i - 1].y) {
            ht_axis swap = runs.axes[i];
            runs.axes[i] = runs.axes[i - 1];
            runs.axes[i - 1] = swap;
        }
    if (runs.count > 0)
        runs.inner = runs.axes[--runs.count];
    for (int i = 0; i < runs.count; i++)
        runs.total *= runs.axes[i].extent;
    return runs;
}

/* Writes the bias, or zeros, to all of y. */
static void write_bias(int rank, const ht_axis *axes, float *y, const float *bias)
{
    Runs runs = runs_of(rank, axes);
#pragma omp parallel for schedule(static) if (runs.total * runs.inner.extent > CPU_PARALLEL)
    for (int64_t i = 0; i < runs.total; i++) {
        Place at = place_of(i, runs.count, runs.axes);
        bias_run(y + at.y, runs.inner.y, bias ? bias + at.b : NULL, runs.inner.b, runs.inner.extent);
    }
}

void product_f32(float *y, const float *x, const float *w, const float *bias, int rank, const ht_axis *axes, float scale)
{
    Product p = {.scale = scale};
    int empty = 0;
    for (int i = 0; i < rank; i++)
        empty |= axes[i].extent == 0;
    if (empty) {
        write_bias(rank, axes, y, bias);
        return;
    }
    take_axes(&p, rank, axes);
    if (bias)
        write_bias(p.rank, p.axes, y, bias);
    choose_axes(&p);
    split_loops(&p);
    if (p.m >= 0 || p.n >= 0 || p.k >= 0)
        run_blas(&p, y, x, w, bias != NULL);
    else
        run_plain(&p, y, x, w, bias != NULL);
}
