/* Products, sums and their gradients, written out. */
#include "eager/tape.h"

#include <cblas.h>
#include <string.h>

static int64_t count_of(ht_dims dims, int first, int last)
{
    int64_t count = 1;
    for (int d = first; d < last; d++)
        count *= dims.extent[d];
    return count;
}

/* c (m, n) = a b + beta c for row-major matrices without gaps, a and b transposed as said; empty sums are 0. */
static void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b, float beta, float *c)
{
    if (m == 0 || n == 0)
        return;
    if (k == 0) {
        for (int64_t i = 0; i < m * n; i++)
            c[i] = beta == 0 ? 0 : beta * c[i];
        return;
    }
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k, 1, a,
                (int)(ta ? m : k), b, (int)(tb ? k : n), beta, c, (int)n);
}

/* Adds the rows of x up, in double. */
static void sum_rows(float *to, const float *x, int64_t rows, int64_t n)
{
#pragma omp parallel for schedule(static) if (rows * n > 65536)
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += x[i * n + j];
        to[j] = (float)sum;
    }
}

/* ---- linear ---- */

static void linear_backward(Entry *e)
{
    ht_node *x = e->operand[0], *w = e->operand[1], *bias = e->operand[2], *dy = eager_gradient_of(e->result[0]);
    int64_t in = w->dims.extent[w->dims.rank - 1], out = count_of(w->dims, 0, w->dims.rank - 1),
            rows = count_of(x->dims, 0, x->dims.rank - 1);
    if (x->needs_gradient) {
        ht_node *dx = eager_node(HT_F32, x->dims);
        gemm(false, false, rows, in, out, eager_f32(dy), eager_f32(w), 0, dx->data);
        eager_add_gradient(x, dx);
    }
    if (w->needs_gradient) {
        ht_node *dw = eager_node(HT_F32, w->dims);
        gemm(true, false, out, in, rows, eager_f32(dy), eager_f32(x), 0, dw->data);
        eager_add_gradient(w, dw);
    }
    if (bias && bias->needs_gradient) {
        ht_node *db = eager_node(HT_F32, bias->dims);
        sum_rows(db->data, eager_f32(dy), rows, out);
        eager_add_gradient(bias, db);
    }
}

static ht_dims linear_dims(ht_node *x, ht_node *w, ht_node *bias)
{
    if (x->dims.rank < 1 || w->dims.rank < 1 || x->dims.extent[x->dims.rank - 1] != w->dims.extent[w->dims.rank - 1])
        eager_mismatch("ht_linear", x, w, "the last dimensions of x and w differ");
    ht_dims out = w->dims, dims = x->dims;
    out.rank--;
    if (bias && !eager_same_shape(bias->dims, out))
        eager_mismatch("ht_linear", w, bias, "the bias has the output dimensions of w");
    if (dims.rank - 1 + out.rank > HT_MAX_RANK)
        ht_fail("ht_linear: a result of more than %d dimensions", HT_MAX_RANK);
    dims.rank--;
    for (int d = 0; d < out.rank; d++)
        dims.extent[dims.rank++] = out.extent[d];
    return dims;
}

ht_tensor ht_linear(ht_tensor x, ht_tensor w, ht_tensor bias)
{
    ht_node *operands[3] = {eager_operand("ht_linear", x), eager_operand("ht_linear", w),
                            bias.node ? eager_operand("ht_linear", bias) : NULL};
    ht_node *y = eager_node(HT_F32, linear_dims(operands[0], operands[1], operands[2]));
    eager_record(linear_backward, 1, &y, 3, operands);
    if (eager_dry())
        return eager_tensor(y);
    ht_dims wd = w.node->dims;
    int64_t in = wd.extent[wd.rank - 1], out = count_of(wd, 0, wd.rank - 1), rows = count_of(x.node->dims, 0, x.node->dims.rank - 1);
    float *to = y->data;
    if (bias.node)
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * out, eager_f32(bias.node), (size_t)out * sizeof(float));
    else
        memset(to, 0, (size_t)y->count * sizeof(float));
    gemm(false, true, rows, out, in, eager_f32(x.node), eager_f32(w.node), 1, to);
    return eager_tensor(y);
}

/* ---- matmul ---- */

typedef struct Matmul {
    int64_t batch, m, n, k;
} Matmul;

static Matmul matmul_sizes(const ht_node *x, const ht_node *w)
{
    int r = x->dims.rank;
    return (Matmul){count_of(x->dims, 0, r - 2), x->dims.extent[r - 2], w->dims.extent[r - 1], x->dims.extent[r - 1]};
}

static void matmul_backward(Entry *e)
{
    ht_node *x = e->operand[0], *w = e->operand[1];
    float *dy = eager_f32(eager_gradient_of(e->result[0]));
    Matmul s = matmul_sizes(x, w);
    ht_node *dx = eager_node(HT_F32, x->dims), *dw = eager_node(HT_F32, w->dims);
    memset(dx->data, 0, (size_t)dx->count * sizeof(float));
    memset(dw->data, 0, (size_t)dw->count * sizeof(float));
#pragma omp parallel for schedule(static) if (s.batch > 1)
    for (int64_t b = 0; b < s.batch; b++) {
        const float *d = dy + b * s.m * s.n;
        gemm(false, true, s.m, s.k, s.n, d, eager_f32(w) + b * s.k * s.n, 0, (float *)dx->data + b * s.m * s.k);
        gemm(true, false, s.k, s.n, s.m, eager_f32(x) + b * s.m * s.k, d, 0, (float *)dw->data + b * s.k * s.n);
    }
    eager_add_gradient(x, dx);
    eager_add_gradient(w, dw);
}

ht_tensor ht_matmul(ht_tensor x, ht_tensor w)
{
    ht_node *operands[2] = {eager_operand("ht_matmul", x), eager_operand("ht_matmul", w)};
    ht_dims xd = operands[0]->dims, wd = operands[1]->dims, dims = xd;
    int r = xd.rank;
    if (r < 2 || wd.rank != r || memcmp(xd.extent, wd.extent, (size_t)(r - 2) * sizeof(int64_t)) != 0 ||
        xd.extent[r - 1] != wd.extent[r - 2])
        eager_mismatch("ht_matmul", operands[0], operands[1], "it takes (.., m, k) and (.., k, n) with equal leading dimensions");
    dims.extent[r - 1] = wd.extent[r - 1];
    ht_node *y = eager_node(HT_F32, dims);
    eager_record(matmul_backward, 1, &y, 2, operands);
    if (eager_dry())
        return eager_tensor(y);
    Matmul s = matmul_sizes(operands[0], operands[1]);
    const float *a = eager_f32(operands[0]), *b = eager_f32(operands[1]);
    memset(y->data, 0, (size_t)y->count * sizeof(float));
#pragma omp parallel for schedule(static) if (s.batch > 1)
    for (int64_t i = 0; i < s.batch; i++)
        gemm(false, false, s.m, s.n, s.k, a + i * s.m * s.k, b + i * s.k * s.n, 0, (float *)y->data + i * s.m * s.n);
    return eager_tensor(y);
}

/* ---- sums over all elements ---- */

static ht_tensor total(const char *operator, ht_tensor x, bool mean, void (*backward)(Entry *))
{
    ht_node *n = eager_operand(operator, x), *y = eager_node(HT_F32, ht_scalar_shape());
    eager_record(backward, 1, &y, 1, &n);
    if (eager_dry())
        return eager_tensor(y);
    const float *data = eager_f32(n);
    double sum = 0;
    for (int64_t i = 0; i < n->count; i++)
        sum += data[i];
    eager_f32(y)[0] = (float)(mean ? sum / (double)n->count : sum);
    return eager_tensor(y);
}

static void spread(Entry *e, float value)
{
    ht_node *x = e->operand[0], *dx = eager_node(HT_F32, x->dims);
    for (int64_t i = 0; i < dx->count; i++)
        eager_f32(dx)[i] = value;
    eager_add_gradient(x, dx);
}

static void sum_backward(Entry *e) { spread(e, eager_f32(eager_gradient_of(e->result[0]))[0]); }

static void mean_backward(Entry *e)
{
    spread(e, (float)((double)eager_f32(eager_gradient_of(e->result[0]))[0] / (double)e->operand[0]->count));
}

ht_tensor ht_sum(ht_tensor x) { return total("ht_sum", x, false, sum_backward); }

ht_tensor ht_mean(ht_tensor x) { return total("ht_mean", x, true, mean_backward); }
