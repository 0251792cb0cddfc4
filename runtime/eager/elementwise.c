/* Elementwise operators and their gradients, written out for each type that is computed in (eager_working); reshape and transpose. */
#include "cpu/cpu.h"
#include "eager/tape.h"

#include <string.h>
#include <tgmath.h>

/* ---- one operand ---- */

static ht_node *like(const ht_node *x) { return eager_node(x->dtype, x->dims); }

/* The y of a function of one operand, and the gradient that its backward fills from dy, x, y. */
typedef void Forward(void *y, const void *x, int64_t count, float factor);
typedef void Backward(void *dx, const void *dy, const void *x, const void *y, int64_t count, float factor);

/* A function for each type that it is computed in; without one for integers it gives fractions. */
typedef struct Unary {
    const char *name;
    Forward *f32, *f64, *i64;
    Backward *slope32, *slope64;
} Unary;

static Forward *forward_of(const Unary *u, const ht_node *x)
{
    ht_dtype working = eager_working(x->dtype);
    return working == HT_F32 ? u->f32 : working == HT_F64 ? u->f64 : u->i64;
}

static ht_tensor unary(const Unary *u, ht_tensor x, float factor, void (*backward)(Entry *))
{
    ht_node *n = eager_operand(u->name, x), *y = like(n);
    if (!u->i64)
        eager_need_fractions(u->name, "x", n);
    Entry *entry = eager_record(backward, 1, &y, 1, &n);
    eager_trace_argument(&(ht_attr){.f = factor});
    if (entry)
        entry->attr[0].f = factor;
    if (eager_dry())
        return eager_tensor(y);
    void *to = eager_target(y);
    forward_of(u, n)(to, eager_read(n), n->count, factor);
    eager_written(y, to);
    return eager_tensor(y);
}

static void fill_slope(const Unary *u, ht_node *dx, ht_node *dy, ht_node *x, ht_node *y, float factor)
{
    Backward *slope = eager_working(x->dtype) == HT_F64 ? u->slope64 : u->slope32;
    void *to = eager_target(dx);
    slope(to, eager_read(dy), eager_read(x), eager_read(y), x->count, factor);
    eager_written(dx, to);
}

static void unary_backward(Entry *e, const Unary *u)
{
    ht_node *x = e->operand[0], *y = e->result[0], *dx = like(x);
    fill_slope(u, dx, eager_gradient_of(y), x, y, (float)e->attr[0].f);
    eager_add_gradient(x, dx);
}

/* Defines NAME_forward_T from the value `VALUE` of x. */
#define FORWARD(T, NAME, VALUE)                                                                                                            \
    static void NAME##_forward_##T(void *y, const void *xs, int64_t count, float factor)                                                   \
    {                                                                                                                                      \
        const T *restrict from = xs;                                                                                                       \
        T *restrict to = y;                                                                                                                \
        (void)factor;                                                                                                                      \
        _Pragma("omp parallel for schedule(static) if (count > CPU_PARALLEL)") for (int64_t i = 0; i < count; i++)                         \
        {                                                                                                                                  \
            T x = from[i];                                                                                                                 \
            to[i] = VALUE;                                                                                                                 \
        }                                                                                                                                  \
    }

/* Defines NAME_slope_T from what flows back, `SLOPE`, in terms of g (the gradient of y), x and y. */
#define SLOPE(T, NAME, SLOPE)                                                                                                              \
    static void NAME##_slope_##T(void *dx, const void *dys, const void *xs, const void *ys, int64_t count, float factor)                   \
    {                                                                                                                                      \
        const T *restrict dy = dys, *restrict from = xs, *restrict results = ys;                                                           \
        T *restrict to = dx;                                                                                                               \
        (void)factor;                                                                                                                      \
        _Pragma("omp parallel for schedule(static) if (count > CPU_PARALLEL)") for (int64_t i = 0; i < count; i++)                         \
        {                                                                                                                                  \
            T g = dy[i], x = from[i], y = results[i];                                                                                      \
            (void)x, (void)y;                                                                                                              \
            to[i] = SLOPE;                                                                                                                 \
        }                                                                                                                                  \
    }

/* Defines an operator over floating-point numbers, and its backward; WHOLE is its forward over integers, or NULL. */
#define UNARY(NAME, VALUE, DERIVATIVE, WHOLE)                                                                                              \
    FORWARD(float, NAME, VALUE)                                                                                                            \
    FORWARD(double, NAME, VALUE)                                                                                                           \
    SLOPE(float, NAME, DERIVATIVE)                                                                                                         \
    SLOPE(double, NAME, DERIVATIVE)                                                                                                        \
    static const Unary NAME##_of = {                                                                                                       \
        "ht_" #NAME, NAME##_forward_float, NAME##_forward_double, WHOLE, NAME##_slope_float, NAME##_slope_double,                          \
    };                                                                                                                                     \
    static void NAME##_backward(Entry *e) { unary_backward(e, &NAME##_of); }

/* gelu by the tanh approximation, and its parts, in terms of x. */
#define GELU_TANH(x) tanh(0.7978845608028654f * (x + 0.044715f * x * x * x))
#define GELU_SLOPE(x, t) (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.7978845608028654f * (1 + 3 * 0.044715f * x * x))
#define SIGMOID(x) (1 / (1 + exp(-x)))

FORWARD(int64_t, relu, x <= 0 ? 0 : x)
UNARY(scale, factor *x, g *factor, NULL)
UNARY(relu, x <= 0 ? 0 : x, x <= 0 ? 0 : g, relu_forward_int64_t)
UNARY(gelu, 0.5f * x * (1 + GELU_TANH(x)), g *GELU_SLOPE(x, GELU_TANH(x)), NULL)
UNARY(silu, x *SIGMOID(x), g *(SIGMOID(x) * (1 + x * (1 - SIGMOID(x)))), NULL)
UNARY(exp, exp(x), g *y, NULL)

ht_tensor ht_scale(ht_tensor x, float factor) { return unary(&scale_of, x, factor, scale_backward); }

ht_tensor ht_relu(ht_tensor x) { return unary(&relu_of, x, 0, relu_backward); }

ht_tensor ht_gelu(ht_tensor x) { return unary(&gelu_of, x, 0, gelu_backward); }

ht_tensor ht_gelu_backward(ht_tensor dy, ht_tensor x)
{
    ht_node *d = eager_operand("ht_gelu_backward", dy), *n = eager_operand("ht_gelu_backward", x), *dx = like(n);
    eager_need_alike("ht_gelu_backward", "dy", d, "x", n);
    eager_need_fractions("ht_gelu_backward", "dy", d);
    if (!eager_same_shape(d->dims, n->dims))
        eager_mismatch("ht_gelu_backward", d, n, "they must be equal");
    if (!eager_dry())
        fill_slope(&gelu_of, dx, d, n, n, 0);
    return eager_tensor(dx);
}

ht_tensor ht_silu(ht_tensor x) { return unary(&silu_of, x, 0, silu_backward); }

ht_tensor ht_exp(ht_tensor x) { return unary(&exp_of, x, 0, exp_backward); }

/* A node over the elements of x in another shape. */
static ht_node *alias(ht_node *x, ht_dims dims)
{
    return eager_node_like((ht_node){.dtype = x->dtype, .dims = dims, .count = x->count, .data = eager_dry() ? NULL : eager_data(x)});
}

ht_tensor ht_detach(ht_tensor x) { return eager_tensor(alias(eager_operand("ht_detach", x), x.node->dims)); }

/* ---- two operands, the second broadcast over the leading dimensions ---- */

typedef struct Pair {
    ht_node *x, *z;
    int64_t rows, n; // x is (rows, n), z is (n)
} Pair;

static Pair pair_of(const char *operator, ht_node * x, ht_node *z)
{
    Pair p = {x, z, 1, z->count};
    int extra = x->dims.rank - z->dims.rank;
    eager_need_alike(operator, "x", x, "z", z);
    if (extra < 0 || memcmp(x->dims.extent + extra, z->dims.extent, (size_t)z->dims.rank * sizeof(int64_t)) != 0)
        eager_mismatch(operator, x, z, "the second must have the last dimensions of the first");
    for (int d = 0; d < extra; d++)
        p.rows *= x->dims.extent[d];
    return p;
}

/* The gradient of z from terms of every row: the sum over rows of sign * dy, times x and over `divisor` where these are given. */
#define SUM_SECOND(T)                                                                                                                      \
    static void sum_second_##T(const Pair *p, void *dz, const void *dys, const void *xs, float sign, const void *divisors)                 \
    {                                                                                                                                      \
        const T *dy = dys, *x = xs, *divisor = divisors;                                                                                   \
        T *to = dz;                                                                                                                        \
        int64_t n = p->n, rows = p->rows;                                                                                                  \
        _Pragma("omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)") for (int64_t j = 0; j < n; j++)                          \
        {                                                                                                                                  \
            double sum = 0;                                                                                                                \
            for (int64_t i = 0; i < rows; i++)                                                                                             \
                sum += x ? (double)dy[i * n + j] * x[i * n + j] : (double)dy[i * n + j];                                                   \
            to[j] = (T)(sign * sum / (divisor ? divisor[j] : 1));                                                                          \
        }                                                                                                                                  \
    }

SUM_SECOND(float)
SUM_SECOND(double)

static void add_to_second(const Pair *p, const void *dy, const void *x, float sign, const void *divisor)
{
    if (!p->z->needs_gradient)
        return;
    ht_node *dz = like(p->z);
    void *to = eager_target(dz);
    (p->z->dtype == HT_F64 ? sum_second_double : sum_second_float)(p, to, dy, x, sign, divisor);
    eager_written(dz, to);
    eager_add_gradient(p->z, dz);
}

static Pair pair_of_entry(Entry *e) { return pair_of("gradient", e->operand[0], e->operand[1]); }

static void add_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    eager_add_gradient(p.x, dy);
    if (eager_same_shape(p.x->dims, p.z->dims))
        eager_add_gradient(p.z, dy);
    else
        add_to_second(&p, eager_read(dy), NULL, 1, NULL);
}

static void sub_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    eager_add_gradient(p.x, dy);
    add_to_second(&p, eager_read(dy), NULL, -1, NULL);
}

/* y of x (rows, n) and z (n). */
typedef void Rows(void *y, const void *x, const void *z, int64_t rows, int64_t n);

/* Defines y = x OPERATOR z, elementwise, z broadcast. */
#define ROWS(T, NAME, OPERATOR)                                                                                                            \
    static void NAME##_##T(void *to, const void *xs, const void *zs, int64_t rows, int64_t n)                                              \
    {                                                                                                                                      \
        const T *restrict x = xs, *restrict z = zs;                                                                                        \
        T *restrict y = to;                                                                                                                \
        _Pragma("omp parallel for schedule(static) if (rows * n > CPU_PARALLEL)") for (int64_t i = 0; i < rows; i++)                       \
        {                                                                                                                                  \
            for (int64_t j = 0; j < n; j++)                                                                                                \
                y[i * n + j] = x[i * n + j] OPERATOR z[j];                                                                                 \
        }                                                                                                                                  \
    }

/* Sums, differences and products of integers wrap around, as PyTorch's do. */
ROWS(float, add, +)
ROWS(double, add, +)
ROWS(uint64_t, add, +)
ROWS(float, subtract, -)
ROWS(double, subtract, -)
ROWS(uint64_t, subtract, -)
ROWS(float, multiply, *)
ROWS(double, multiply, *)
ROWS(uint64_t, multiply, *)
ROWS(float, divide, /)
ROWS(double, divide, /)

/* An operator for each type that it is computed in; without one for integers it gives fractions. */
typedef struct Binary {
    const char *name;
    Rows *f32, *f64, *i64;
} Binary;

static const Binary sum_of = {"ht_add", add_float, add_double, add_uint64_t};
static const Binary difference_of = {"ht_sub", subtract_float, subtract_double, subtract_uint64_t};
static const Binary product_of = {"ht_mul", multiply_float, multiply_double, multiply_uint64_t};
static const Binary quotient_of = {"ht_div", divide_float, divide_double, NULL};

/* y = x OPERATOR z for nodes of one type. */
static void compute(const Binary *b, ht_node *y, ht_node *x, ht_node *z, const Pair *p)
{
    ht_dtype working = eager_working(x->dtype);
    void *to = eager_target(y);
    (working == HT_F32 ? b->f32 : working == HT_F64 ? b->f64 : b->i64)(to, eager_read(x), eager_read(z), p->rows, p->n);
    eager_written(y, to);
}

/* dx = dy OPERATOR z. */
static void add_to_first(const Binary *b, const Pair *p, ht_node *dy)
{
    if (!p->x->needs_gradient)
        return;
    ht_node *dx = like(p->x);
    compute(b, dx, dy, p->z, p);
    eager_add_gradient(p->x, dx);
}

static void mul_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    add_to_first(&product_of, &p, dy);
    add_to_second(&p, eager_read(dy), eager_read(p.x), 1, NULL);
}

static void div_backward(Entry *e)
{
    Pair p = pair_of_entry(e);
    ht_node *dy = eager_gradient_of(e->result[0]);
    add_to_first(&quotient_of, &p, dy);
    add_to_second(&p, eager_read(dy), eager_read(e->result[0]), -1, eager_read(p.z));
}

static ht_tensor broadcast(const Binary *b, ht_tensor x, ht_tensor z, void (*backward)(Entry *))
{
    Pair p = pair_of(b->name, eager_operand(b->name, x), eager_operand(b->name, z));
    ht_node *y = like(p.x), *operands[2] = {p.x, p.z};
    if (!b->i64)
        eager_need_fractions(b->name, "x", p.x);
    eager_record(backward, 1, &y, 2, operands);
    if (!eager_dry())
        compute(b, y, p.x, p.z, &p);
    return eager_tensor(y);
}

/* What a gradient function adds may be known to be zero. */
ht_tensor ht_add(ht_tensor x, ht_tensor z)
{
    if (x.node && z.node && z.node->zero && z.node->dtype == x.node->dtype && eager_same_shape(x.node->dims, z.node->dims))
        return x;
    return broadcast(&sum_of, x, z, add_backward);
}

ht_tensor ht_sub(ht_tensor x, ht_tensor z) { return broadcast(&difference_of, x, z, sub_backward); }

ht_tensor ht_mul(ht_tensor x, ht_tensor z) { return broadcast(&product_of, x, z, mul_backward); }

ht_tensor ht_div(ht_tensor x, ht_tensor z) { return broadcast(&quotient_of, x, z, div_backward); }

/* ---- the loss of a row ---- */

/* For each row whether the target is one that is left out. */
static const bool *ignored_rows(ht_node *target)
{
    const int64_t *t = eager_read(target);
    bool *ignored = eager_alloc((size_t)target->count * sizeof *ignored);
    for (int64_t i = 0; i < target->count; i++)
        ignored[i] = t[i] == -100;
    return ignored;
}

/* The loss of each row, and the gradient of mass; `d` is that of the loss where the row counts, else 0. */
#define NLL(T)                                                                                                                             \
    static void nll_##T(void *loss, const void *masses, const void *hits, const void *peaks, const bool *ignored, int64_t count)           \
    {                                                                                                                                      \
        const T *mass = masses, *hit = hits, *peak = peaks;                                                                                \
        for (int64_t i = 0; i < count; i++)                                                                                                \
            ((T *)loss)[i] = ignored[i] ? 0 : log(mass[i]) + (peak[i] - hit[i]);                                                           \
    }                                                                                                                                      \
    static void nll_slopes_##T(void *to[3], const void *dys, const void *masses, const bool *ignored, int64_t count)                       \
    {                                                                                                                                      \
        const T *dy = dys, *mass = masses;                                                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                                                              \
            ((T *)to[0])[i] = ignored[i] ? 0 : dy[i] / mass[i];                                                                            \
            ((T *)to[1])[i] = ignored[i] ? 0 : -dy[i];                                                                                     \
            ((T *)to[2])[i] = ignored[i] ? 0 : dy[i];                                                                                      \
        }                                                                                                                                  \
    }

NLL(float)
NLL(double)

/* Operands: mass, hit, peak, target. */
static void nll_backward(Entry *e)
{
    ht_node *mass = e->operand[0], *d[3];
    void *to[3];
    for (int k = 0; k < 3; k++)
        to[k] = eager_target(d[k] = like(mass));
    (mass->dtype == HT_F64 ? nll_slopes_double : nll_slopes_float)(to, eager_read(eager_gradient_of(e->result[0])), eager_read(mass),
                                                                   ignored_rows(e->operand[3]), mass->count);
    for (int k = 0; k < 3; k++) {
        eager_written(d[k], to[k]);
        eager_add_gradient(e->operand[k], d[k]);
    }
}

static void check_nll(ht_node *const operands[4])
{
    static const char *const names[] = {"mass", "hit", "peak"};
    for (int i = 1; i < 4; i++)
        if (!eager_same_shape(operands[0]->dims, operands[i]->dims))
            eager_mismatch("ht_nll", operands[0], operands[i], "they must be equal");
    for (int i = 1; i < 3; i++)
        eager_need_type("ht_nll", names[i], operands[i], operands[0]->dtype);
    eager_need_integers("ht_nll", "target", operands[3]);
    eager_need_fractions("ht_nll", "mass", operands[0]);
}

ht_tensor ht_nll(ht_tensor mass, ht_tensor hit, ht_tensor peak, ht_tensor target)
{
    ht_node *operands[4] = {eager_operand("ht_nll", mass), eager_operand("ht_nll", hit), eager_operand("ht_nll", peak),
                            eager_operand("ht_nll", target)};
    check_nll(operands);
    ht_node *y = like(operands[0]);
    eager_record(nll_backward, 1, &y, 4, operands);
    if (eager_dry())
        return eager_tensor(y);
    void *to = eager_target(y);
    (y->dtype == HT_F64 ? nll_double : nll_float)(to, eager_read(operands[0]), eager_read(operands[1]), eager_read(operands[2]),
                                                  ignored_rows(operands[3]), y->count);
    eager_written(y, to);
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
    ht_node *n = eager_operand("ht_reshape", x);
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
    ht_node *n = eager_operand("ht_transpose", x);
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
