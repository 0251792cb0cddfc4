/* Products, sums and their gradients, written out, each in the type that is computed in (eager_working). */
#include "cpu/cpu.h"
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

/* A matrix product at work: c (m, n) = a b + beta c for row-major matrices without gaps, a and b transposed as said, in a type that is
 * computed in; empty sums are 0. */
typedef struct Gemm {
    ht_dtype dtype;
    bool ta, tb;
    int64_t m, n, k;
    int beta; // 0 or 1
} Gemm;

/* Products of integers wrap around. */
static void gemm_integers(const Gemm *g, const uint64_t *a, const uint64_t *b, uint64_t *c)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            uint64_t sum = g->beta ? c[i * g->n + j] : 0;
            for (int64_t l = 0; l < g->k; l++)
                sum += a[g->ta ? l * g->m + i : i * g->k + l] * b[g->tb ? j * g->k + l : l * g->n + j];
            c[i * g->n + j] = sum;
        }
}

static void gemm(const Gemm *g, const void *a, const void *b, void *c)
{
    CBLAS_TRANSPOSE ta = g->ta ? CblasTrans : CblasNoTrans, tb = g->tb ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k, lda = g->ta ? m : k, ldb = g->tb ? k : n;
    if (g->dtype == HT_I64)
        gemm_integers(g, a, b, c);
    else if (m == 0 || n == 0 || (k == 0 && g->beta))
        return;
    else if (k == 0)
        memset(c, 0, (size_t)(g->m * g->n) * (size_t)cpu_size(g->dtype));
    else if (g->dtype == HT_F64)
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, g->beta, c, n);
    else
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, (float)g->beta, c, n);
}

/* Adds the rows of x up, in double. */
static void sum_rows(ht_dtype dtype, void *to, const void *x, int64_t rows, int64_t n)
{
#pragma omp parallel for schedule(static) if (rows * n > 65536)
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += dtype == HT_F64 ? ((const double *)x)[i * n + j] : (double)((const float *)x)[i * n + j];
        if (dtype == HT_F64)
            ((double *)to)[j] = sum;
        else
            ((float *)to)[j] = (float)sum;
    }
}

/* ---- linear ---- */

/* Gives a node the gradient a b of the product. */
static void add_product(ht_node *node, const Gemm *g, const void *a, const void *b)
{
    ht_node *gradient = eager_node(node->dtype, node->dims);
    void *to = eager_target(gradient);
    gemm(g, a, b, to);
    eager_written(gradient, to);
    eager_add_gradient(node, gradient);
}

static void linear_backward(Entry *e)
{
    ht_node *x = e->operand[0], *w = e->operand[1], *bias = e->operand[2];
    const void *dy = eager_read(eager_gradient_of(e->result[0]));
    ht_dtype dtype = eager_working(x->dtype);
    int64_t in = w->dims.extent[w->dims.rank - 1], out = count_of(w->dims, 0, w->dims.rank - 1),
            rows = count_of(x->dims, 0, x->dims.rank - 1);
    if (x->needs_gradient)
        add_product(x, &(Gemm){dtype, false, false, rows, in, out, 0}, dy, eager_read(w));
    if (w->needs_gradient)
        add_product(w, &(Gemm){dtype, true, false, out, in, rows, 0}, dy, eager_read(x));
    if (bias && bias->needs_gradient) {
        ht_node *db = eager_node(bias->dtype, bias->dims);
        void *to = eager_target(db);
        sum_rows(dtype, to, dy, rows, out);
        eager_written(db, to);
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
    eager_need_alike("ht_linear", "x", x.node, "w", w.node);
    if (bias.node)
        eager_need_alike("ht_linear", "x", x.node, "bias", bias.node);
    ht_node *y = eager_node(x.node->dtype, linear_dims(operands[0], operands[1], operands[2]));
    eager_record(linear_backward, 1, &y, 3, operands);
    if (eager_dry())
        return eager_tensor(y);
    ht_dims wd = w.node->dims;
    int64_t in = wd.extent[wd.rank - 1], out = count_of(wd, 0, wd.rank - 1), rows = count_of(x.node->dims, 0, x.node->dims.rank - 1);
    ht_dtype dtype = eager_working(y->dtype);
    size_t row = (size_t)out * (size_t)cpu_size(dtype);
    const void *added = bias.node ? eager_read(bias.node) : NULL;
    char *to = eager_target(y);
    for (int64_t i = 0; added && i < rows; i++)
        memcpy(to + (size_t)i * row, added, row);
    gemm(&(Gemm){dtype, false, true, rows, out, in, added != NULL}, eager_read(x.node), eager_read(w.node), to);
    eager_written(y, to);
    return eager_tensor(y);
}

/* ---- matmul ---- */

/* A product of each pair of matrices. */
typedef struct Matmul {
    int64_t batch, m, n, k;
} Matmul;

static Matmul matmul_sizes(const ht_node *x, const ht_node *w)
{
    int r = x->dims.rank;
    return (Matmul){count_of(x->dims, 0, r - 2), x->dims.extent[r - 2], w->dims.extent[r - 1], x->dims.extent[r - 1]};
}

/* y = a b for each of a batch. */
static void multiply_all(ht_node *y, int64_t batch, const Gemm *g, ht_node *a, ht_node *b)
{
    int64_t size = cpu_size(g->dtype), of_a = g->m * g->k * size, of_b = g->k * g->n * size, of_y = g->m * g->n * size;
    const char *left = eager_read(a), *right = eager_read(b);
    char *to = eager_target(y);
#pragma omp parallel for schedule(static) if (batch > 1)
    for (int64_t i = 0; i < batch; i++)
        gemm(g, left + i * of_a, right + i * of_b, to + i * of_y);
    eager_written(y, to);
}

static void matmul_backward(Entry *e)
{
    ht_node *x = e->operand[0], *w = e->operand[1], *dy = eager_gradient_of(e->result[0]);
    Matmul s = matmul_sizes(x, w);
    ht_dtype dtype = eager_working(x->dtype);
    ht_node *dx = eager_node(x->dtype, x->dims), *dw = eager_node(w->dtype, w->dims);
    multiply_all(dx, s.batch, &(Gemm){dtype, false, true, s.m, s.k, s.n, 0}, dy, w);
    multiply_all(dw, s.batch, &(Gemm){dtype, true, false, s.k, s.n, s.m, 0}, x, dy);
    eager_add_gradient(x, dx);
    eager_add_gradient(w, dw);
}

ht_tensor ht_matmul(ht_tensor x, ht_tensor w)
{
    ht_node *operands[2] = {eager_operand("ht_matmul", x), eager_operand("ht_matmul", w)};
    ht_dims xd = operands[0]->dims, wd = operands[1]->dims, dims = xd;
    int r = xd.rank;
    eager_need_alike("ht_matmul", "x", operands[0], "w", operands[1]);
    if (r < 2 || wd.rank != r || memcmp(xd.extent, wd.extent, (size_t)(r - 2) * sizeof(int64_t)) != 0 ||
        xd.extent[r - 1] != wd.extent[r - 2])
        eager_mismatch("ht_matmul", operands[0], operands[1], "it takes (.., m, k) and (.., k, n) with equal leading dimensions");
    dims.extent[r - 1] = wd.extent[r - 1];
    ht_node *y = eager_node(operands[0]->dtype, dims);
    eager_record(matmul_backward, 1, &y, 2, operands);
    Matmul s = matmul_sizes(operands[0], operands[1]);
    if (!eager_dry())
        multiply_all(y, s.batch, &(Gemm){eager_working(y->dtype), false, false, s.m, s.n, s.k, 0}, operands[0], operands[1]);
    return eager_tensor(y);
}

/* ---- sums over all elements ---- */

/* The sum of numbers, in double. */
static double total_of(ht_node *x)
{
    const void *data = eager_read(x);
    double sum = 0;
    for (int64_t i = 0; i < x->count; i++)
        sum += x->dtype == HT_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
    return sum;
}

static int64_t integer_total(ht_node *x)
{
    const uint64_t *data = eager_read(x);
    uint64_t sum = 0;
    for (int64_t i = 0; i < x->count; i++)
        sum += data[i];
    return (int64_t)sum;
}

/* A scalar of floating-point type. */
static void set_scalar(ht_node *y, double value)
{
    if (y->dtype == HT_F64)
        *(double *)y->data = value;
    else
        *(float *)y->data = (float)value;
}

static ht_tensor total(const char *operator, ht_tensor x, bool mean, void (*backward)(Entry *))
{
    ht_node *n = eager_operand(operator, x), *y = eager_node(eager_working(n->dtype), ht_scalar_shape());
    if (mean)
        eager_need_fractions(operator, "x", n);
    eager_record(backward, 1, &y, 1, &n);
    if (eager_dry())
        return eager_tensor(y);
    if (eager_is_integer(n))
        *(int64_t *)y->data = integer_total(n);
    else
        set_scalar(y, mean ? total_of(n) / (double)n->count : total_of(n));
    return eager_tensor(y);
}

/* Gives all elements of the operand the gradient dy / divisor. */
static void spread(Entry *e, double divisor)
{
    ht_node *x = e->operand[0], *dx = eager_node(x->dtype, x->dims);
    double value = total_of(eager_gradient_of(e->result[0])) / divisor;
    void *to = eager_target(dx);
    for (int64_t i = 0; i < dx->count; i++)
        if (x->dtype == HT_F64)
            ((double *)to)[i] = value;
        else
            ((float *)to)[i] = (float)value;
    eager_written(dx, to);
    eager_add_gradient(x, dx);
}

static void sum_backward(Entry *e) { spread(e, 1); }

static void mean_backward(Entry *e) { spread(e, (double)e->operand[0]->count); }

ht_tensor ht_sum(ht_tensor x) { return total("ht_sum", x, false, sum_backward); }

ht_tensor ht_mean(ht_tensor x) { return total("ht_mean", x, true, mean_backward); }
