/* Tensor contractions (matmul, linear) in f32: by BLAS (sgemm), which chooses tiles, where axes
 * form a matrix product, else by loops. onednn_product.c comes first: bf16, and f32 of few rows. */
#include "device/contraction.h"
#include "cpu/cpu.h"

#include <cblas.h>
#include <omp.h>
#include <string.h>

/* Number of multiplications below which one sgemm runs on a single thread. */
static const double SMALL = 4e6;

/* Number of multiplications of all small products below which one thread is as fast as two. */
static const double FEW = 1 << 17;

/* A contraction and the factor that multiplies each of its sums. */
typedef struct Product {
    Contraction c;
    float scale;
} Product;

/* Returns the sgemm transposition of a matrix with rows along `a` and columns along `b` (strides
 * sa, sb; an absent axis is NULL). Sets *lead to the leading dimension. */
static CBLAS_TRANSPOSE matrix_form(const ht_axis *a, int64_t sa, const ht_axis *b, int64_t sb,
                                   blasint *lead) {
    int transposed = b && (a ? sb != 1 || sa < b->extent : sb != 1);
    if (transposed) *lead = (blasint)sb;
    else *lead = (blasint)(a ? sa : b ? b->extent : 1);
    return transposed ? CblasTrans : CblasNoTrans;
}

/* Calls sgemm: y (m, n) = scale * x (m, k) w (k, n) + beta * y. An absent axis has extent 1. */
static void multiply(const Product *p, float *y, const float *x, const float *w, float beta) {
    const ht_axis *m = contraction_axis(&p->c, p->c.m), *n = contraction_axis(&p->c, p->c.n),
                  *k = contraction_axis(&p->c, p->c.k);
    blasint em = m ? (blasint)m->extent : 1, en = n ? (blasint)n->extent : 1,
            ek = k ? (blasint)k->extent : 1, ldx, ldw, ldy;
    CBLAS_TRANSPOSE tx = matrix_form(m, m ? m->x : 0, k, k ? k->x : 0, &ldx);
    CBLAS_TRANSPOSE tw = matrix_form(k, k ? k->w : 0, n, n ? n->w : 0, &ldw);
    if (matrix_form(m, m ? m->y : 0, n, n ? n->y : 0, &ldy) == CblasNoTrans)
        cblas_sgemm(CblasRowMajor, tx, tw, em, en, ek, p->scale, x, ldx, w, ldw, beta, y, ldy);
    else
        cblas_sgemm(CblasRowMajor, tw == CblasTrans ? CblasNoTrans : CblasTrans,
                    tx == CblasTrans ? CblasNoTrans : CblasTrans, en, em, ek, p->scale, w, ldw, x,
                    ldx, beta, y, ldy);
}

/* Returns the sum of x * w over all summed axes for one element of y. */
static float dot(const Product *p, const float *x, const float *w) {
    const ht_axis *inner = &p->c.sum[p->c.sum_count - 1];
    int64_t runs = p->c.sum_total / inner->extent;
    float total = 0;
    for (int64_t r = 0; r < runs; r++) {
        Place at = place_of(r, p->c.sum_count - 1, p->c.sum);
        const float *a = x + at.x, *b = w + at.w;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < inner->extent; i++) sum += a[i * inner->x] * b[i * inner->w];
        total += sum;
    }
    return total;
}

/* Computes one matrix of y by sgemm, one call for each index of the remaining summed axes. If
 * `biased`, y already holds the bias, and the first call adds to y. */
static void run_outer(const Product *p, float *y, const float *x, const float *w, int biased) {
    for (int64_t s = 0; s < p->c.sum_total; s++) {
        Place at = place_of(s, p->c.sum_count, p->c.sum);
        multiply(p, y, x + at.x, w + at.w, biased || s > 0 ? 1.0f : 0.0f);
    }
}

static void run_blas(const Product *p, float *y, const float *x, const float *w, int biased) {
    double each = contraction_size(&p->c) * (double)p->c.sum_total;
    int parallel = p->c.outer_total > 1 && each < SMALL && each * (double)p->c.outer_total >= FEW;
#pragma omp parallel for schedule(static) if (parallel)
    for (int64_t i = 0; i < p->c.outer_total; i++) {
        Place at = place_of(i, p->c.outer_count, p->c.outer);
        run_outer(p, y + at.y, x + at.x, w + at.w, biased);
    }
}

static void run_plain(const Product *p, float *y, const float *x, const float *w, int biased) {
#pragma omp parallel for schedule(static) if (p->c.outer_total * p->c.sum_total > CPU_PARALLEL)
    for (int64_t i = 0; i < p->c.outer_total; i++) {
        Place at = place_of(i, p->c.outer_count, p->c.outer);
        float sum = p->c.sum_count ? dot(p, x + at.x, w + at.w) : x[at.x] * w[at.w];
        y[at.y] = p->scale * sum + (biased ? y[at.y] : 0.0f);
    }
}

/* Sets `n` elements of y, `step` apart, to the bias (`bias_step` apart), or to 0 if it is NULL. */
static void bias_run(float *y, int64_t step, const float *bias, int64_t bias_step, int64_t n) {
    if (step == 1 && bias && bias_step == 1) memcpy(y, bias, (size_t)n * sizeof(float));
    else
        for (int64_t i = 0; i < n; i++) y[i * step] = bias ? bias[i * bias_step] : 0.0f;
}

void product_bias(float *y, const float *bias, int rank, const ht_axis *axes) {
    Runs runs = runs_of(rank, axes);
#pragma omp parallel for schedule(static) if (runs.total * runs.inner.extent > CPU_PARALLEL)
    for (int64_t i = 0; i < runs.total; i++) {
        Place at = place_of(i, runs.count, runs.axes);
        bias_run(y + at.y, runs.inner.y, bias ? bias + at.b : NULL, runs.inner.b,
                 runs.inner.extent);
    }
}

void product_f32(float *y, const float *x, const float *w, const float *bias, int rank,
                 const ht_axis *axes, float scale) {
    int empty = 0;
    for (int i = 0; i < rank; i++) empty |= axes[i].extent == 0;
    if (empty) {
        product_bias(y, bias, rank, axes);
        return;
    }
    Product p = {contraction_of(rank, axes), scale};
    if (bias) product_bias(y, bias, p.c.rank, p.c.axes);
    if (p.c.m >= 0 || p.c.n >= 0 || p.c.k >= 0) run_blas(&p, y, x, w, bias != NULL);
    else run_plain(&p, y, x, w, bias != NULL);
}
