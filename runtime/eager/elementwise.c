/* Elementwise operators and their gradients, written out; reshape and transpose. */
#include "cpu/cpu.h"
#include "eager/tape.h"

#include <math.h>
#include <string.h>

/* ---- one operand ---- */

static ht_node *like(const ht_node *x) { return eager_node(HT_F32, x->dims); }

/* The y of a function of one operand, and the gradient that its backward fills from dy, x, y. */
typedef void Forward(float *y, const float *x, int64_t count, float factor);
typedef void Backward(float *dx, const float *dy, const float *x, const float *y, int64_t count, float factor);

static ht_tensor unary(const char *operator, ht_tensor x, float factor, Forward *forward, void (*backward)(Entry *))
{
    ht_node *n = eager_operand(operator, x), *y = like(n);
    Entry *entry = eager_record(backward, 1, &y, 1, &n);
    eager_trace_argument(&(ht_attr){.f = factor});
    if (entry)
        entry->attr[0].f = factor;
    if (!eager_dry())
        forward(y->data, eager_f32(n), n->count, factor);
    return eager_tensor(y);
}

static void unary_backward(Entry *e, Backward *backward)
{
    ht_node *x = e->operand[0], *y = e->result[0], *dx = like(x);
    backward(dx->data, eager_f32(eager_gradient_of(y)), eager_f32(x), eager_f32(y), x->count, (float)e->attr[0].f);
    eager_add_gradient(x, dx);
}

/* Defines an operator from the value `VALUE` of x, and its derivative `SLOPE` in terms of x and y. */
#define UNARY(NAME, VALUE, SLOPE)                                                                                                          \
    static void NAME##_forward(float *restrict to, const float *restrict from, int64_t count, float factor)                                \
    {                                                                                                                                      \
        (void)factor;                                                                                                                      \
        _Pragma("omp parallel for schedule(static) if (count > CPU_PARALLEL)") for (int64_t i = 0; i < count; i++)                         \
        {                                                                                                                                  \
            float x = from[i];                                                                                                             \
            to[i] = VALUE;                                                                                                                 \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static void NAME##_slope(float *restrict dx, const float *restrict dy, const float *restrict xs, const float *restrict ys,             \
                             int64_t count, float factor)                                                                                  \
    {                                                                                                                                      \
        (void)factor;                                                                                                                      \
        _Pragma("omp parallel for schedule(static) if (count > CPU_PARALLEL)") for (int64_t i = 0; i < count; i++)                         \
        {                                                                                                                                  \
            float x = xs[i], y = ys[i];                                                                                                    \
            (void)x, (void)y;                                                                                                              \
            dx[i] = dy[i] * (SLOPE);                                                                                                       \
        }                                                                                                                                  \
    }                                                                                                                                      \
    static void NAME##_backward(Entry *e) { unary_backward(e, NAME##_slope); }

static float gelu_tanh(float x) { return tanhf(0.7978845608f * (x + 0.044715f * x * x * x)); }

/* Where the tanh has settled, its argument's slope may have grown out of the floats. */
static float gelu_slope_at(float x)
{
    float t = gelu_tanh(x), settling = 1 - t * t;
    return 0.5f * (1 + t) + (settling != 0 ? 0.5f * x * settling * 0.7978845608f * (1 + 3 * 0.044715f * x * x) : 0);
}

static float sigmoid(float x) { return 1 / (1 + expf(-x)); }

UNARY(scale, factor *x, factor)
UNARY(relu, x <= 0 ? 0 : x, x <= 0 ? 0.0f : 1.0f)
UNARY(gelu, 0.5f * x * (1 + gelu_tanh(x)), gelu_slope_at(x))
UNARY(silu, x *sigmoid(x), sigmoid(x) * (1 + x * (1 - sigmoid(x))))
UNARY(exponential, expf(x), y)

ht_tensor ht_scale(ht_tensor x, float factor) { return unary("ht_scale", x, factor, scale_forward, scale_backward); }

ht_tensor ht_relu(ht_tensor x) { return unary("ht_relu", x, 0, relu_forward, relu_backward); }

ht_tensor ht_gelu(ht_tensor x) { return unary("ht_gelu", x, 0, gelu_forward, gelu_backward); }

ht_tensor ht_silu(ht_tensor x) { return unary("ht_silu", x, 0, silu_forward, silu_backward); }

ht_tensor ht_exp(ht_tensor x) { return unary("ht_exp", x, 0, exponential_forward, exponential_backward); }

/* A node over the elements of x in another shape. */
static ht_node *alias(ht_node *x, ht_dims dims)
{
    return eager_node_like((ht_node){.dtype = x->dtype, .dims = dims, .count = x->count, .data = eager_dry() ? NULL : eager_data(x)});
}

ht_tensor ht_detach(ht_tensor x) { return eager_tensor(alias(eager_operand_any("ht_detach", x), x.node->dims)); }

/* ---- two operands, the second broadcast over the leading dimensions ---- */

typedef struct Pair {
    ht_node *x, *z;
    int64_t rows, n; // x is (rows, n), z is (n)
} Pair;

static Pair pair_of(const char *operator, ht_tensor x, ht_tensor z)
{
    Pair p = {eager_operand(operator, x), eager_operand(operator, z), 1, 1};
    int extra = p.x->dims.rank - p.z->dims.rank;
    if (extra < 0 || memcmp(p.x->dims.extent + extra, p.z->dims.extent, (size_t)p.z->dims.rank * sizeof(int64_t)) != 0)
        eager_mismatch(operator, p.x, p.z, "the second must have the last dimensions of the first");
    p.n = p.z->count;
    for (int d = 0; d < extra; d++)
        p.rows *= p.x->dims.extent[d];
    return p;
}

/* The gradient of z from terms of every row: the sum over rows of sign * dy, times x and over `divisor` where these are given. */
static void add_to_second(const Pair *p, const float *dy, const float *x, float sign, const float *divisor)
{
    if (!p->z->needs_gradient)
        return;
    ht_node *dz = like(p->z);
    float *to = dz->data;
    int64_t n = p->n, rows = p->rows;
#pragma omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++)
            sum += x ? (double)dy[i * n + j] * x[i * n + j] : (double)dy[i * n + j];
        to[j] = (float)(sign * sum / (divisor ? divisor[j] : 1));
    }
    eager_add_gradient(p->z, dz);
}

static Pair pair_of_entry(Entry *e) { return pair_of("gradient", eager_tensor(e->operand[0]), eager_tensor(e->operand[1])); }

static void add_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    eager_add_gradient(p.x, dy);
    if (eager_same_shape(p.x->dims, p.z->dims))
        eager_add_gradient(p.z, dy);
    else
        add_to_second(&p, eager_f32(dy), NULL, 1, NULL);
}

static void sub_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    eager_add_gradient(p.x, dy);
    add_to_second(&p, eager_f32(dy), NULL, -1, NULL);
}

/* y of x (rows, n) and z (n). */
typedef void Rows(float *restrict y, const float *restrict x, const float *restrict z, int64_t rows, int64_t n);

/* Defines y = x OPERATOR z, elementwise, z broadcast. */
#define ROWS(NAME, OPERATOR)                                                                                                               \
    static void NAME(float *restrict y, const float *restrict x, const float *restrict z, int64_t rows, int64_t n)                         \
    {                                                                                                                                      \
        _Pragma("omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)") for (int64_t i = 0; i < rows; i++)                       \
        {                                                                                                                                  \
            for (int64_t j = 0; j < n; j++)                                                                                                \
                y[i * n + j] = x[i * n + j] OPERATOR z[j];                                                                                 \
        }                                                                                                                                  \
    }

ROWS(add_rows, +)
ROWS(subtract_rows, -)
ROWS(multiply_rows, *)
ROWS(divide_rows, /)

static void mul_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    float *dy = eager_f32(eager_gradient_of(e->result[0]));
    if (p.x->needs_gradient) {
        ht_node *dx = like(p.x);
        multiply_rows(dx->data, dy, eager_f32(p.z), p.rows, p.n);
        eager_add_gradient(p.x, dx);
    }
    add_to_second(&p, dy, eager_f32(p.x), 1, NULL);
}

static void div_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    float *dy = eager_f32(eager_gradient_of(e->result[0]));
    if (p.x->needs_gradient) {
        ht_node *dx = like(p.x);
        divide_rows(dx->data, dy, eager_f32(p.z), p.rows, p.n);
        eager_add_gradient(p.x, dx);
    }
    add_to_second(&p, dy, eager_f32(e->result[0]), -1, eager_f32(p.z));
}

static ht_tensor broadcast(const char *operator, ht_tensor x, ht_tensor z, Rows *forward, void (*backward)(Entry *))
{
    Pair p = pair_of(operator, x, z);
    ht_node *y = like(p.x), *operands[2] = {p.x, p.z};
    eager_record(backward, 1, &y, 2, operands);
    if (!eager_dry())
        forward(y->data, eager_f32(p.x), eager_f32(p.z), p.rows, p.n);
    return eager_tensor(y);
}

/* What a gradient function adds may be known to be zero. */
ht_tensor ht_add(ht_tensor x, ht_tensor z)
{
    if (x.node && z.node && z.node->zero && eager_same_shape(x.node->dims, z.node->dims))
        return x;
    return broadcast("ht_add", x, z, add_rows, add_backward);
}

ht_tensor ht_sub(ht_tensor x, ht_tensor z) { return broadcast("ht_sub", x, z, subtract_rows, sub_backward); }

ht_tensor ht_mul(ht_tensor x, ht_tensor z) { return broadcast("ht_mul", x, z, multiply_rows, mul_backward); }

ht_tensor ht_div(ht_tensor x, ht_tensor z) { return broadcast("ht_div", x, z, divide_rows, div_backward); }

/* ---- the loss of a row ---- */

static bool ignored(ht_node *target, int64_t i)
{
    return (target->dtype == HT_I32 ? ((int32_t *)target->data)[i] : ((int64_t *)target->data)[i]) == -100;
}

/* Operands: mass, hit, peak, target. */
static void nll_backward(Entry *e)
{
    ht_node *mass = e->operand[0], *hit = e->operand[1], *peak = e->operand[2], *target = e->operand[3];
    ht_node *dmass = like(mass), *dhit = like(hit), *dpeak = like(peak);
    float *dy = eager_f32(eager_gradient_of(e->result[0]));
    for (int64_t i = 0; i < mass->count; i++) {
        float d = ignored(target, i) ? 0.0f : dy[i];
        eager_f32(dmass)[i] = ignored(target, i) ? 0.0f : d / eager_f32(mass)[i];
        eager_f32(dhit)[i] = -d;
        eager_f32(dpeak)[i] = d;
    }
    eager_add_gradient(mass, dmass);
    eager_add_gradient(hit, dhit);
    eager_add_gradient(peak, dpeak);
}

ht_tensor ht_nll(ht_tensor mass, ht_tensor hit, ht_tensor peak, ht_tensor target)
{
    ht_node *operands[4] = {eager_operand("ht_nll", mass), eager_operand("ht_nll", hit), eager_operand("ht_nll", peak),
                            eager_operand_any("ht_nll", target)};
    for (int i = 1; i < 4; i++)
        if (!eager_same_shape(operands[0]->dims, operands[i]->dims))
            eager_mismatch("ht_nll", operands[0], operands[i], "they must be equal");
    ht_node *y = like(operands[0]);
    eager_record(nll_backward, 1, &y, 4, operands);
    for (int64_t i = 0; !eager_dry() && i < y->count; i++)
        eager_f32(y)[i] =
            ignored(operands[3], i) ? 0.0f : logf(eager_f32(operands[0])[i]) + (eager_f32(operands[2])[i] - eager_f32(operands[1])[i]);
    return eager_tensor(y);
}

/* ---- shapes ---- */

static void reshape_backward(Entry *e) { eager_add_gradient(e->operand[0], alias(eager_gradient_of(e->result[0]), e->operand[0]->dims)); }

/* Puts into an extent of -1, of which there is one at most, what the others leave; false where they leave no whole number. */
static bool infer_extent(ht_dims *dims, int64_t elements)
{
    int64_t known = 1, *open = NULL;
    for (int d = 0; d < dims->rank; d++) {
        if (dims->extent[d] == -1 && !open)
            open = &dims->extent[d];
        else if (dims->extent[d] < 0 || __builtin_mul_overflow(known, dims->extent[d], &known))
            return false;
    }
    if (!open)
        return known == elements;
    if (known == 0 || elements % known != 0)
        return false;
    *open = elements / known;
    return true;
}

ht_tensor ht_reshape(ht_tensor x, ht_dims dims)
{
    ht_node *n = eager_operand_any("ht_reshape", x);
    ht_dims to = dims;
    eager_check_rank(dims.rank);
    if (!infer_extent(&to, n->count))
        ht_fail("ht_reshape: %s has %ld elements, which the shape %s cannot hold", eager_shape_text(n->dims), (long)n->count,
                eager_shape_text(dims));
    ht_node *y = alias(n, to);
    eager_record(reshape_backward, 1, &y, 1, &n);
    return eager_tensor(y);
}

/* Copies x, seen as (a, p, m, q, z), to (a, q, m, p, z). */
static void transpose(char *to, const char *from, const ht_dims *dims, int first, int second, size_t size)
{
    int64_t a = 1, m = 1, z = 1, p = dims->extent[first], q = dims->extent[second];
    for (int d = 0; d < dims->rank; d++)
        *(d < first ? &a : d < second ? &m : &z) *= d == first || d == second ? 1 : dims->extent[d];
    size_t run = (size_t)z * size;
#pragma omp parallel for schedule(static) if (a * p * m * q * z > CPU_PARALLEL)
    for (int64_t i = 0; i < a * q; i++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t k = 0; k < p; k++)
                memcpy(to + (size_t)((i * m + j) * p + k) * run, from + (size_t)(((i / q * p + k) * m + j) * q + i % q) * run, run);
}

static ht_node *transposed(ht_node *x, int first, int second)
{
    ht_dims dims = x->dims;
    dims.extent[first] = x->dims.extent[second];
    dims.extent[second] = x->dims.extent[first];
    ht_node *y = eager_node(x->dtype, dims);
    if (!eager_dry())
        transpose(y->data, eager_data(x), &x->dims, first, second, (size_t)cpu_size(x->dtype));
    return y;
}

static void transpose_backward(Entry *e)
{
    eager_add_gradient(e->operand[0], transposed(eager_gradient_of(e->result[0]), (int)e->attr[0].i, (int)e->attr[1].i));
}

ht_tensor ht_transpose_at(ht_tensor x, int first, int second)
{
    ht_node *n = eager_operand_any("ht_transpose", x);
    if (first < 0 || first >= second || second >= n->dims.rank)
        ht_fail("ht_transpose: a tensor of shape %s has no dimensions %d and %d", eager_shape_text(n->dims), first, second);
    ht_node *y = transposed(n, first, second);
    Entry *entry = eager_record(transpose_backward, 1, &y, 1, &n);
    if (entry) {
        entry->attr[0].i = first;
        entry->attr[1].i = second;
    }
    return eager_tensor(y);
}
