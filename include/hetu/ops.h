/* ops.h: every operator of a model, declared with its rule.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise. The pragma in front of a
 * prototype says what the operator computes and how it may be cut (factor notation); the compiler
 * knows nothing else about it. An operator whose rule is an expression needs no kernel and no
 * gradient. Other rules name a C kernel and a gradient function; the gradient function follows the
 * prototype and is built from operators.
 *
 * Functions without a suffix call NAME_at or NAME_stats; gradient functions call NAME_backward.
 */
#ifndef HETU_OPS_H
#define HETU_OPS_H

/* clang-format off: other line breaks would make the rules hard to read. */

#include <hetu/model.h>

#include <assert.h>

static inline bool ht_is_integer(ht_tensor x)
{
    return ht_dtype_of(x) == HT_I32 || ht_dtype_of(x) == HT_I64;
}

/* ---- products ---- */

/* Returns y = x wᵀ + bias over the last dimension of x. x: (.., i), w: (o.., i), bias: (o..) or
 * HT_NONE, y: (.., o..). */
#pragma hspmd op y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]
ht_tensor ht_linear(ht_tensor x, ht_tensor w, ht_tensor bias);

/* Returns matrix products of the last two dimensions: (.., m, k) times (.., k, n) gives (.., m, n).
 * Leading dimensions are equal. */
#pragma hspmd op y[b.., m, n] = x[b.., m, k] * w[b.., k, n]
ht_tensor ht_matmul(ht_tensor x, ht_tensor w);

/* ---- elementwise ---- */

/* Repeats x `extent` times along a new dimension `dim`. */
#pragma hspmd op y[a..{dim}, n, z..] = x[a.., z..] size(n: extent)
ht_tensor ht_repeat_at(ht_tensor x, int dim, int64_t extent);

/* Returns the same elements, in row-major order, in another shape. */
#pragma hspmd op y = reshape(x) shape(dims)
ht_tensor ht_reshape(ht_tensor x, ht_dims dims);

/* Removes dimension dim, whose extent is 1. */
static inline ht_tensor ht_squeeze_at(ht_tensor x, int dim)
{
    ht_dims dims = ht_dims_of(x);
    for (int d = dim; d + 1 < dims.rank; d++)
        dims.extent[d] = dims.extent[d + 1];
    dims.rank--;
    return ht_reshape(x, dims);
}

/* Returns the common shape of two shapes by NumPy's broadcasting rule: (4, 1) and (3) give (4, 3).
 * Where extents disagree, the first shape's extent counts. */
static inline ht_dims ht_broadcast_dims(ht_dims a, ht_dims b)
{
    ht_dims dims = {a.rank > b.rank ? a.rank : b.rank, {0}};
    for (int d = 1; d <= dims.rank; d++) {
        int64_t in_a = d <= a.rank ? a.extent[a.rank - d] : 1, in_b = d <= b.rank ? b.extent[b.rank - d] : 1;
        dims.extent[dims.rank - d] = in_a == 1 ? in_b : in_a;
    }
    return dims;
}

/* Broadcasts x to `dims`: repeats dimensions of extent 1, and adds leading dimensions. A dimension
 * of another extent stays, even where dims disagrees. */
static inline ht_tensor ht_repeated(ht_tensor x, ht_dims dims)
{
    for (int d = 0, rank = ht_rank(x); d < dims.rank; d++) {
        int own = d - (dims.rank - rank);
        if (own >= 0 && (ht_extent(x, d) != 1 || dims.extent[d] == 1))
            continue;
        x = ht_repeat_at(own < 0 ? x : ht_squeeze_at(x, d), d, dims.extent[d]);
    }
    return x;
}

/* Broadcasts x to a shape: repeats dimensions of extent 1, and adds leading dimensions. */
static inline ht_tensor ht_expand(ht_tensor x, ht_dims dims)
{
    ht_dims own = ht_dims_of(x);
    assert(own.rank <= dims.rank && "ht_expand takes no dimension away");
    for (int d = 1; d <= own.rank; d++)
        assert((own.extent[own.rank - d] == 1 || own.extent[own.rank - d] == dims.extent[dims.rank - d]) && "ht_expand repeats dimensions of extent 1 alone");
    return ht_repeated(x, dims);
}

typedef struct ht_pair {
    ht_tensor x, z;
} ht_pair;

/* Expands two operands by NumPy's broadcasting rule: x to the common shape, z to the last
 * dimensions of that shape. The operators broadcast z over the leading dimensions. */
static inline ht_pair ht_broadcast(ht_tensor x, ht_tensor z)
{
    ht_dims of_z = ht_dims_of(z), dims = ht_broadcast_dims(ht_dims_of(x), of_z);
    int front = dims.rank - of_z.rank;
    for (int d = 0; d < of_z.rank; d++)
        of_z.extent[d] = dims.extent[front + d];
    while (of_z.rank > 0 && ht_extent(z, 0) == 1 && of_z.extent[0] != 1) {
        z = ht_squeeze_at(z, 0);
        of_z.rank--;
        for (int d = 0; d < of_z.rank; d++)
            of_z.extent[d] = of_z.extent[d + 1];
    }
    return (ht_pair){ht_repeated(x, dims), ht_repeated(z, of_z)};
}

/* Returns a number as a tensor of the given type without dimensions; integers round towards 0. */
#pragma hspmd op y[] = value dtype(y: dtype)
ht_tensor ht_number_at(double value, ht_dtype dtype);

/* Does the same as ht_number_at, but ends the program if an integer type cannot hold the number. */
static inline ht_tensor ht_scalar_at(double value, ht_dtype dtype)
{
    assert((dtype != HT_I32 || (value > -2147483649.0 && value < 2147483648.0)) && "the number fits into 32 bits");
    assert((dtype != HT_I64 || (value >= -0x1p63 && value < 0x1p63)) && "the number fits into 64 bits");
    return ht_number_at(value, dtype);
}

static inline ht_tensor ht_scalar(double value)
{
    return ht_scalar_at(value, HT_F32);
}

/* Operators that broadcast z over leading dimensions of x; ht_add etc. broadcast both. */
#pragma hspmd op y[a.., b..] = x[a.., b..] + z[b..]
ht_tensor ht_add_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] - z[b..]
ht_tensor ht_sub_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] * z[b..]
ht_tensor ht_mul_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] / z[b..]
ht_tensor ht_div_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = powf(x[a.., b..], z[b..])
ht_tensor ht_pow_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = fmaxf(x[a.., b..], z[b..])
ht_tensor ht_maximum_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = fminf(x[a.., b..], z[b..])
ht_tensor ht_minimum_at(ht_tensor x, ht_tensor z);

/* Comparisons: 1 where the comparison holds, else 0. */
#pragma hspmd op y[a.., b..] = x[a.., b..] == z[b..] dtype(y: i32) grad(none)
ht_tensor ht_eq_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] != z[b..] dtype(y: i32) grad(none)
ht_tensor ht_ne_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] < z[b..] dtype(y: i32) grad(none)
ht_tensor ht_lt_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] <= z[b..] dtype(y: i32) grad(none)
ht_tensor ht_le_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] > z[b..] dtype(y: i32) grad(none)
ht_tensor ht_gt_at(ht_tensor x, ht_tensor z);

#pragma hspmd op y[a.., b..] = x[a.., b..] >= z[b..] dtype(y: i32) grad(none)
ht_tensor ht_ge_at(ht_tensor x, ht_tensor z);

static inline ht_tensor ht_add(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_add_at(pair.x, pair.z);
}

static inline ht_tensor ht_sub(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_sub_at(pair.x, pair.z);
}

static inline ht_tensor ht_mul(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_mul_at(pair.x, pair.z);
}

static inline ht_tensor ht_div(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_div_at(pair.x, pair.z);
}

static inline ht_tensor ht_pow(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_pow_at(pair.x, pair.z);
}

static inline ht_tensor ht_maximum(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_maximum_at(pair.x, pair.z);
}

static inline ht_tensor ht_minimum(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_minimum_at(pair.x, pair.z);
}

static inline ht_tensor ht_eq(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_eq_at(pair.x, pair.z);
}

static inline ht_tensor ht_ne(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_ne_at(pair.x, pair.z);
}

static inline ht_tensor ht_lt(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_lt_at(pair.x, pair.z);
}

static inline ht_tensor ht_le(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_le_at(pair.x, pair.z);
}

static inline ht_tensor ht_gt(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_gt_at(pair.x, pair.z);
}

static inline ht_tensor ht_ge(ht_tensor x, ht_tensor z)
{
    ht_pair pair = ht_broadcast(x, z);
    return ht_ge_at(pair.x, pair.z);
}

#pragma hspmd op y[i..] = factor * x[i..]
ht_tensor ht_scale(ht_tensor x, float factor);

#pragma hspmd op y[i..] = x[i..] <= 0 ? 0 : x[i..] epilogue(HT_RELU) grad(ht_relu_gradient)
ht_tensor ht_relu(ht_tensor x);

/* Returns the gradient of ht_relu, by its result, so that its operand need not be kept. */
#pragma hspmd op dx[i..] = y[i..] <= 0 ? 0 : dy[i..] grad(none)
ht_tensor ht_relu_backward(ht_tensor dy, ht_tensor y);

static inline void ht_relu_gradient(ht_grad *g)
{
    g->dx[0] = ht_relu_backward(g->dy[0], g->y[0]);
}

/* Returns GELU by the tanh approximation. */
#pragma hspmd op y[i..] = 0.5f * x[i..] * (1 + tanhf(0.7978845608028654f * (x[i..] + 0.044715f * x[i..] * x[i..] * x[i..]))) epilogue(HT_GELU) grad(ht_gelu_gradient)
ht_tensor ht_gelu(ht_tensor x);

/* Returns the gradient of ht_gelu by PyTorch's formula, which has x (0.7978845608028654f +
 * 0.0356774 x^2) inside tanh. Like PyTorch's, the result is NaN where x * x overflows. */
#pragma hspmd op dx[i..] = dy[i..] * (0.5f * (1 + tanhf(x[i..] * (0.7978845608028654f + 0.035677408136300125f * x[i..] * x[i..]))) + \
    0.5f * x[i..] * (1 - tanhf(x[i..] * (0.7978845608028654f + 0.035677408136300125f * x[i..] * x[i..])) * \
                         tanhf(x[i..] * (0.7978845608028654f + 0.035677408136300125f * x[i..] * x[i..]))) * \
    (0.7978845608028654f + 0.10703222440890037f * x[i..] * x[i..])) grad(none)
ht_tensor ht_gelu_backward(ht_tensor dy, ht_tensor x);

static inline void ht_gelu_gradient(ht_grad *g)
{
    g->dx[0] = ht_gelu_backward(g->dy[0], g->x[0]);
}

#pragma hspmd op y[i..] = x[i..] / (1 + expf(-x[i..]))
ht_tensor ht_silu(ht_tensor x);

#pragma hspmd op y[i..] = expf(x[i..])
ht_tensor ht_exp(ht_tensor x);

#pragma hspmd op y[i..] = logf(x[i..])
ht_tensor ht_log(ht_tensor x);

#pragma hspmd op y[i..] = sqrtf(x[i..])
ht_tensor ht_sqrt(ht_tensor x);

#pragma hspmd op y[i..] = 1 / sqrtf(x[i..])
ht_tensor ht_rsqrt(ht_tensor x);

#pragma hspmd op y[i..] = fabsf(x[i..])
ht_tensor ht_abs(ht_tensor x);

#pragma hspmd op y[i..] = -x[i..]
ht_tensor ht_neg(ht_tensor x);

#pragma hspmd op y[i..] = sinf(x[i..])
ht_tensor ht_sin(ht_tensor x);

#pragma hspmd op y[i..] = cosf(x[i..])
ht_tensor ht_cos(ht_tensor x);

#pragma hspmd op y[i..] = tanhf(x[i..])
ht_tensor ht_tanh(ht_tensor x);

#pragma hspmd op y[i..] = erff(x[i..])
ht_tensor ht_erf(ht_tensor x);

#pragma hspmd op y[i..] = 1 / (1 + expf(-x[i..]))
ht_tensor ht_sigmoid(ht_tensor x);

/* Returns GELU by the error function. */
#pragma hspmd op y[i..] = 0.5f * x[i..] * (1 + erff(0.7071067811865476f * x[i..]))
ht_tensor ht_gelu_erf(ht_tensor x);

/* Returns log(1 + exp(beta * x)) / beta, or x where beta * x is larger than the threshold. */
#pragma hspmd op y[i..] = beta * x[i..] > threshold ? x[i..] : log1pf(expf(beta * x[i..])) / beta
ht_tensor ht_softplus(ht_tensor x, float beta, float threshold);

#pragma hspmd op y[i..] = x[i..] > 0 ? x[i..] : negative_slope * x[i..]
ht_tensor ht_leaky_relu(ht_tensor x, float negative_slope);

#pragma hspmd op y[i..] = x[i..] <= 0 ? alpha * expm1f(x[i..]) : x[i..]
ht_tensor ht_elu(ht_tensor x, float alpha);

/* Clamps x to the bounds. The gradient is 0 where x is at a bound, beyond a bound, or NaN. */
#pragma hspmd op y[i..] = x[i..] <= min ? (min < max ? min : max) : x[i..] >= max ? max : x[i..] == x[i..] ? x[i..] : 0 * x[i..]
ht_tensor ht_clamp(ht_tensor x, float min, float max);

/* Returns x where the condition is not 0, else z. */
#pragma hspmd op y[i..] = condition[i..] != 0 ? x[i..] : z[i..] dtype(y: x, condition: integer)
ht_tensor ht_where_at(ht_tensor condition, ht_tensor x, ht_tensor z);

static inline ht_tensor ht_where(ht_tensor condition, ht_tensor x, ht_tensor z)
{
    ht_dims dims = ht_broadcast_dims(ht_broadcast_dims(ht_dims_of(condition), ht_dims_of(x)), ht_dims_of(z));
    return ht_where_at(ht_repeated(condition, dims), ht_repeated(x, dims), ht_repeated(z, dims));
}

/* Returns x with `value` at the elements where the mask is not 0. */
static inline ht_tensor ht_masked_fill(ht_tensor x, ht_tensor mask, float value)
{
    return ht_where(mask, ht_scalar_at(value, ht_dtype_of(x)), x);
}

/* Returns the same values; no gradient flows back. */
#pragma hspmd op y[i..] = x[i..] grad(none)
ht_tensor ht_detach(ht_tensor x);

/* Converts elements to another type. Gradients flow between floating-point types. */
#pragma hspmd op y[i..] = x[i..] dtype(y: dtype)
ht_tensor ht_cast(ht_tensor x, ht_dtype dtype);

/* ---- sums ---- */

#pragma hspmd op y[] = x[i..] dtype(y: wide)
ht_tensor ht_sum(ht_tensor x);

#pragma hspmd op y[] = x[i..] / size(i) dtype(y: wide)
ht_tensor ht_mean(ht_tensor x);

/* Returns the sums over `count` dimensions from `first` on. */
#pragma hspmd op y[a..{first}, z..] = x[a.., n..{count}, z..] dtype(y: wide)
ht_tensor ht_sum_at(ht_tensor x, int first, int count);

/* ---- largest elements ---- */

/* Returns the largest element of each row. The gradient is divided among equal largest elements. */
#pragma hspmd op y[b..] = row_max(x[b.., v]) \
    reduction(max: v) neutral(x: logf(0)) dtype(y: wide) types(f32, bf16) operations(size(b) * size(v)) kernel(ht_row_max_kernel) grad(ht_amax_gradient)
ht_tensor ht_amax_at(ht_tensor x);

#pragma hspmd op ties[b..] = x[b.., v] == peak[b..] ? 1.0f : 0.0f dtype(ties: peak, peak: wide) grad(none)
ht_tensor ht_ties(ht_tensor x, ht_tensor peak);

#pragma hspmd op dx[b.., v] = dy[b..] / ties[b..] * (x[b.., v] == peak[b..] ? 1.0f : 0.0f) dtype(dx: x, dy: wide, peak: wide, ties: wide) grad(none)
ht_tensor ht_amax_backward(ht_tensor dy, ht_tensor x, ht_tensor peak, ht_tensor ties);

static inline void ht_amax_gradient(ht_grad *g)
{
    g->dx[0] = ht_amax_backward(g->dy[0], g->x[0], g->y[0], ht_ties(g->x[0], g->y[0]));
}

/* Returns x where it is finite, else 0. */
#pragma hspmd op y[i..] = x[i..] - x[i..] == 0 ? x[i..] : 0 grad(none)
ht_tensor ht_finite(ht_tensor x);

/* Returns the largest number of each row as f32; integers up to 2^24 are exact. */
#pragma hspmd op y[b..] = row_max(x[b.., v]) reduction(max: v) neutral(x: logf(0)) types(f32) operations(size(b) * size(v)) kernel(ht_row_max_kernel) grad(none)
ht_tensor ht_amax_single(ht_tensor x);

/* Returns at[v], the index, where x is the row's largest element or NaN, else the row's length. */
#pragma hspmd op y[b.., v] = x[b.., v] == peak[b..] ? at[v] : x[b.., v] != x[b.., v] ? at[v] : size(v) dtype(y: f32, peak: wide, at: integer) grad(none)
ht_tensor ht_peaks_at(ht_tensor x, ht_tensor peak, ht_tensor at);

/* ---- normalisation over the last dimension ---- */

#pragma hspmd op y[r.., c] = softmax(x[r.., c]) replicate(c) neutral(x: logf(0), y: 0) types(f32, bf16) operations(5 * size(r) * size(c)) kernel(ht_softmax_kernel) grad(ht_softmax_gradient)
ht_tensor ht_softmax(ht_tensor x);

#pragma hspmd op dx[r.., c] = softmax_backward(dy[r.., c], y[r.., c]) \
    body(dot[r..] = dy[r.., c] * y[r.., c]; \
         dx[r.., c] = y[r.., c] * (dy[r.., c] - dot[r..])) \
    replicate(c) linear(dy) types(f32, bf16) kernel(ht_softmax_backward_kernel) grad(none)
ht_tensor ht_softmax_backward(ht_tensor dy, ht_tensor y);

static inline void ht_softmax_gradient(ht_grad *g)
{
    g->dx[0] = ht_softmax_backward(g->dy[0], g->y[0]);
}

/* Layer norm: y = (x - mean) * rstd * weight + bias with rstd = 1 / sqrt(variance + eps). weight
 * and bias may be HT_NONE. */
typedef struct ht_layer_norm_result {
    ht_tensor y, mean, rstd;
} ht_layer_norm_result;
#pragma hspmd op y[r.., c], mean[r..], rstd[r..] = layer_norm(x[r.., c], ?weight[c] = 1, ?bias[c]) \
    body(sum[r..] = x[r.., c]; \
         mean[r..] = sum[r..] / size(c); \
         squares[r..] = (x[r.., c] - mean[r..]) * (x[r.., c] - mean[r..]); \
         rstd[r..] = 1 / sqrtf(squares[r..] / size(c) + eps); \
         y[r.., c] = (x[r.., c] - mean[r..]) * rstd[r..] * ?weight[c] + ?bias[c]) \
    replicate(c) dtype(mean: wide, rstd: wide, weight: wide, bias: wide) types(f32, bf16) \
    kernel(ht_layer_norm_kernel) grad(ht_layer_norm_gradient)
ht_layer_norm_result ht_layer_norm_stats(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps);

typedef struct ht_layer_norm_backward_result {
    ht_tensor dx, dweight, dbias;
} ht_layer_norm_backward_result;
#pragma hspmd op dx[r.., c], dweight[c], dbias[c] = layer_norm_backward(dy[r.., c], x[r.., c], mean[r..], rstd[r..], ?weight[c], ?more[r.., c]) \
    replicate(c) reduction(+: r) linear(dy, more) plus(dx: more) dtype(dweight: wide, dbias: wide, mean: wide, rstd: wide, weight: wide) types(f32, bf16) \
    operations(13 * size(r) * size(c)) kernel(ht_layer_norm_backward_kernel) grad(none)
ht_layer_norm_backward_result ht_layer_norm_backward(ht_tensor dy, ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor weight, ht_tensor more);

/* Returns the gradient of x that flows through mean and rstd. */
#pragma hspmd op dx[r.., c] = dmean[r..] / size(c) - drstd[r..] * rstd[r..] * rstd[r..] * rstd[r..] * (x[r.., c] - mean[r..]) / size(c) \
    dtype(dx: x, mean: wide, rstd: wide, dmean: wide, drstd: wide) types(f32, bf16) grad(none)
ht_tensor ht_layer_norm_stats_backward(ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor dmean, ht_tensor drstd);

static inline void ht_layer_norm_gradient(ht_grad *g)
{
    ht_layer_norm_backward_result d = ht_layer_norm_backward(g->dy[0], g->x[0], g->y[1], g->y[2], g->x[1], HT_NONE);
    g->dx[0] = ht_add(d.dx, ht_layer_norm_stats_backward(g->x[0], g->y[1], g->y[2], g->dy[1], g->dy[2]));
    if (ht_present(g->x[1]))
        g->dx[1] = d.dweight;
    if (ht_present(g->x[2]))
        g->dx[2] = d.dbias;
}

static inline ht_tensor ht_layer_norm(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    return ht_layer_norm_stats(x, weight, bias, eps).y;
}

/* RMS norm: y = x * rstd * weight, rstd = 1 / sqrt(mean(x^2) + eps). weight may be HT_NONE. */
typedef struct ht_rms_norm_result {
    ht_tensor y, rstd;
} ht_rms_norm_result;
#pragma hspmd op y[r.., c], rstd[r..] = rms_norm(x[r.., c], ?weight[c] = 1) \
    body(squares[r..] = x[r.., c] * x[r.., c]; \
         rstd[r..] = 1 / sqrtf(squares[r..] / size(c) + eps); \
         y[r.., c] = x[r.., c] * rstd[r..] * ?weight[c]) \
    replicate(c) dtype(rstd: wide, weight: wide) types(f32, bf16) kernel(ht_rms_norm_kernel) grad(ht_rms_norm_gradient)
ht_rms_norm_result ht_rms_norm_stats(ht_tensor x, ht_tensor weight, float eps);

typedef struct ht_rms_norm_backward_result {
    ht_tensor dx, dweight;
} ht_rms_norm_backward_result;
#pragma hspmd op dx[r.., c], dweight[c] = rms_norm_backward(dy[r.., c], x[r.., c], rstd[r..], ?weight[c], ?more[r.., c]) \
    replicate(c) reduction(+: r) linear(dy, more) plus(dx: more) dtype(dweight: wide, rstd: wide, weight: wide) types(f32, bf16) \
    operations(9 * size(r) * size(c)) kernel(ht_rms_norm_backward_kernel) grad(none)
ht_rms_norm_backward_result ht_rms_norm_backward(ht_tensor dy, ht_tensor x, ht_tensor rstd, ht_tensor weight, ht_tensor more);

/* Returns the gradient of x that flows through rstd. */
#pragma hspmd op dx[r.., c] = -drstd[r..] * rstd[r..] * rstd[r..] * rstd[r..] * x[r.., c] / size(c) \
    dtype(dx: x, rstd: wide, drstd: wide) types(f32, bf16) grad(none)
ht_tensor ht_rms_norm_stats_backward(ht_tensor x, ht_tensor rstd, ht_tensor drstd);

static inline void ht_rms_norm_gradient(ht_grad *g)
{
    ht_rms_norm_backward_result d = ht_rms_norm_backward(g->dy[0], g->x[0], g->y[1], g->x[1], HT_NONE);
    g->dx[0] = ht_add(d.dx, ht_rms_norm_stats_backward(g->x[0], g->y[1], g->dy[1]));
    if (ht_present(g->x[1]))
        g->dx[1] = d.dweight;
}

static inline ht_tensor ht_rms_norm(ht_tensor x, ht_tensor weight, float eps)
{
    return ht_rms_norm_stats(x, weight, eps).y;
}

/* L2 norm: y = x * rnorm with rnorm = 1 / max(length of x, eps). */
typedef struct ht_l2_norm_result {
    ht_tensor y, rnorm;
} ht_l2_norm_result;
#pragma hspmd op y[r.., c], rnorm[r..] = l2_norm(x[r.., c]) \
    body(squares[r..] = x[r.., c] * x[r.., c]; \
         length[r..] = sqrtf(squares[r..]); \
         rnorm[r..] = 1 / (length[r..] < eps ? eps : length[r..]); \
         y[r.., c] = x[r.., c] * rnorm[r..]) \
    replicate(c) dtype(rnorm: wide) types(f32, bf16) kernel(ht_l2_norm_kernel) grad(ht_l2_norm_gradient)
ht_l2_norm_result ht_l2_norm_stats(ht_tensor x, float eps);

#pragma hspmd op dx[r.., c] = l2_norm_backward(dy[r.., c], y[r.., c], rnorm[r..]) \
    replicate(c) linear(dy) dtype(rnorm: wide) types(f32, bf16) operations(5 * size(r) * size(c)) kernel(ht_l2_norm_backward_kernel) grad(none)
ht_tensor ht_l2_norm_backward(ht_tensor dy, ht_tensor y, ht_tensor rnorm, float eps);

/* Returns the gradient of x through rnorm: 0 where eps is larger than the length of x. */
#pragma hspmd op dx[r.., c] = rnorm[r..] < 1 / eps ? -drnorm[r..] * rnorm[r..] * rnorm[r..] * y[r.., c] : 0 \
    dtype(dx: y, rnorm: wide, drnorm: wide) linear(drnorm) types(f32, bf16) grad(none)
ht_tensor ht_l2_norm_stats_backward(ht_tensor y, ht_tensor rnorm, ht_tensor drnorm, float eps);

static inline void ht_l2_norm_gradient(ht_grad *g)
{
    float eps = (float)g->attr[0].f;
    g->dx[0] = ht_add(ht_l2_norm_backward(g->dy[0], g->y[0], g->y[1], eps), ht_l2_norm_stats_backward(g->y[0], g->y[1], g->dy[1], eps));
}

static inline ht_tensor ht_l2_norm(ht_tensor x, float eps)
{
    return ht_l2_norm_stats(x, eps).y;
}

/* ---- batch norm (layers.h) ---- */

/* Return the sums of x, and of the squares of x - mean, over all dimensions but the channels c. */
#pragma hspmd op y[c] = x[b, c, s..] dtype(y: wide)
ht_tensor ht_channel_sums(ht_tensor x);

#pragma hspmd op y[c] = (x[b, c, s..] - mean[c]) * (x[b, c, s..] - mean[c]) dtype(y: wide, mean: wide)
ht_tensor ht_channel_squares(ht_tensor x, ht_tensor mean);

/* Normalizes channels by the mean of x and rstd = 1 / sqrt(variance of x + eps). bias may be
 * HT_NONE. The gradient of x is the one that flows through mean and rstd, too. */
#pragma hspmd op y[b, c, s..] = (x[b, c, s..] - mean[c]) * rstd[c] * weight[c] + ?bias[c] \
    dtype(mean: wide, rstd: wide, weight: wide, bias: wide) grad(ht_channel_norm_gradient)
ht_tensor ht_channel_norm(ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor weight, ht_tensor bias);

#pragma hspmd op dweight[c] = dy[b, c, s..] * ((x[b, c, s..] - mean[c]) * rstd[c]) dtype(dweight: wide, mean: wide, rstd: wide) grad(none)
ht_tensor ht_channel_norm_weight(ht_tensor dy, ht_tensor x, ht_tensor mean, ht_tensor rstd);

/* share: 1 over the number of elements of a channel. */
#pragma hspmd op dx[b, c, s..] = (dy[b, c, s..] - (dbias[c] + (x[b, c, s..] - mean[c]) * rstd[c] * dweight[c]) * share) * (rstd[c] * weight[c]) \
    dtype(dx: x, mean: wide, rstd: wide, weight: wide, dweight: wide, dbias: wide) grad(none)
ht_tensor ht_channel_norm_backward(ht_tensor dy, ht_tensor x, ht_tensor mean, ht_tensor rstd, ht_tensor weight, ht_tensor dweight, ht_tensor dbias, float share);

static inline void ht_channel_norm_gradient(ht_grad *g)
{
    ht_tensor x = g->x[0], mean = g->x[1], rstd = g->x[2];
    ht_tensor dweight = ht_channel_norm_weight(g->dy[0], x, mean, rstd), dbias = ht_channel_sums(g->dy[0]);
    double count = 1;
    for (int d = 0; d < ht_rank(x); d++)
        count *= d == 1 ? 1 : (double)ht_extent(x, d);
    g->dx[0] = ht_channel_norm_backward(g->dy[0], x, mean, rstd, g->x[3], dweight, dbias, (float)(1 / count));
    g->dx[3] = dweight;
    if (ht_present(g->x[4]))
        g->dx[4] = dbias;
}

/* ---- tables of rows ---- */

/* Returns y[b] = table[id[b]] for i32 or i64 ids. If the rows are cut, a device gives zeros for
 * rows of other devices. */
#pragma hspmd op y[b.., e] = embedding(table[v, e], id[b..]) \
    reduction(+: v) offset(v, b) linear(table) dtype(id: integer) types(f32, bf16, f64) \
    operations(0) reads(table: size(b) * size(e)) kernel(ht_embedding_kernel) grad(ht_embedding_gradient)
ht_tensor ht_embedding_at(ht_tensor table, ht_tensor id);

/* Returns the gradient of a table: row r is the sum of the rows of dy whose id is r, plus row r of
 * `more`, if present. In place (dtable is more), writes only rows that occur in `id`. */
#pragma hspmd op dtable[v, e] = embedding_backward(dy[b.., e], id[b..], ?more[v, e]) \
    size(v: rows) reduction(+: b) offset(v, b) linear(dy, more) plus(dtable: more) inplace(dtable: more) reads(more: size(b) * size(e)) \
    dtype(dtable: wide, id: integer, more: wide) types(f32, bf16) \
    operations(size(b) * size(e)) kernel(ht_embedding_backward_kernel) grad(none)
ht_tensor ht_embedding_backward(ht_tensor dy, ht_tensor id, ht_tensor more, int64_t rows);

/* Computes the sums in f32, also for rows of f64. */
static inline void ht_embedding_gradient(ht_grad *g)
{
    ht_tensor dy = ht_dtype_of(g->dy[0]) == HT_F64 ? ht_cast(g->dy[0], HT_F32) : g->dy[0];
    g->dx[0] = ht_embedding_backward(dy, g->x[1], HT_NONE, ht_extent(g->x[0], 0));
}

/* Looks up rows of a table by integers: table (rows, width), id (..) gives (.., width). An id
 * outside the table ends the program. */
static inline ht_tensor ht_embedding(ht_tensor table, ht_tensor id)
{
    assert(ht_is_integer(id) && "the ids of ht_embedding are integers");
    return ht_embedding_at(table, id);
}

/* ---- attention ---- */

/* Rotary position embedding: rotates the pair (x[i], x[i + d/2]) by the angle position *
 * base^(-2i/d), as Hugging Face's LLaMA does. The position is the index along s, or the given
 * integer. Direction -1 rotates back. d is even. */
#pragma hspmd op y[b.., s, h, d] = rope(x[b.., s, h, d], ?position[b.., s]) \
    replicate(d) offset(s) linear(x) requires(size(d) % 2 == 0) dtype(position: integer) types(f32, bf16) \
    operations(3 * size(b) * size(s) * size(h) * size(d)) kernel(ht_rope_kernel) grad(ht_rope_gradient)
ht_tensor ht_rope_at(ht_tensor x, ht_tensor position, float base, int direction);

static inline void ht_rope_gradient(ht_grad *g)
{
    g->dx[0] = ht_rope_at(g->dy[0], g->x[1], (float)g->attr[0].f, -(int)g->attr[1].i);
}

static inline ht_tensor ht_rope(ht_tensor x, float base)
{
    assert(ht_extent(x, -1) % 2 == 0 && "ht_rope turns pairs: the last dimension is even");
    return ht_rope_at(x, HT_NONE, base, 1);
}

/* Rotates as ht_rope, but by the given positions (integers), for packed sequences. */
static inline ht_tensor ht_rope_positions(ht_tensor x, ht_tensor position, float base)
{
    assert(ht_extent(x, -1) % 2 == 0 && "ht_rope turns pairs: the last dimension is even");
    assert(ht_is_integer(position) && "positions are integers");
    return ht_rope_at(x, position, base, 1);
}

typedef struct ht_attention_result {
    ht_tensor y, lse;
} ht_attention_result;

/* Returns softmax(q kᵀ / sqrt(d)) v for each head. q: (.., s, heads, d); k, v: (.., t, groups, d).
 * Heads are a multiple of groups, and query head i reads key-value head i / (heads / groups). Under
 * `causal`, query i sees keys 0 to i. With segments (integers), a query sees only keys of its own
 * segment. No matrix of scores is stored. lse: the logarithm of the sum of a row's exponentials. */
#pragma hspmd op y[b.., s, (g r), d], lse[b.., s, (g r)] = attention(q[b.., s, (g r), d], k[b.., t, g, d], v[b.., t, g, d], ?segments[b.., s], ?key_segments[b.., t]) \
    replicate(d) offset(s, t) causal(s, t: causal) merge(t: ht_attention_merge) dtype(lse: wide, segments: integer, key_segments: integer) types(f32, bf16) \
    pitch(q: s, k: t, v: t) operations((causal ? 2 : 4) * size(b) * size(g) * size(r) * size(s) * size(t) * size(d)) kernel(ht_attention_kernel) grad(ht_attention_gradient)
ht_attention_result ht_attention_stats(ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor segments, ht_tensor key_segments, bool causal);

/* Joins attention over two sets of keys (online softmax): each result is weighted by exp(lse). A
 * row that sees no key of a set has lse minus infinity. */
#pragma hspmd op y[i.., d], lse[i..] = attention_merge(y1[i.., d], lse1[i..], y2[i.., d], lse2[i..]) \
    replicate(d) dtype(lse: wide, lse1: wide, lse2: wide) \
    body(second[i..] = lse1[i..] == lse2[i..] ? 0.5f : 1 / (1 + expf(lse1[i..] - lse2[i..])); \
         lse[i..] = lse1[i..] == lse2[i..] ? lse1[i..] + 0.6931471806f : fmaxf(lse1[i..], lse2[i..]) + log1pf(expf(-fabsf(lse1[i..] - lse2[i..]))); \
         y[i.., d] = y1[i.., d] + second[i..] * (y2[i.., d] - y1[i.., d])) grad(none)
ht_attention_result ht_attention_merge(ht_tensor y1, ht_tensor lse1, ht_tensor y2, ht_tensor lse2);

typedef struct ht_attention_backward_result {
    ht_tensor dq, dk, dv;
} ht_attention_backward_result;
#pragma hspmd op dq[b.., s, (g r), d], dk[b.., t, g, d], dv[b.., t, g, d] = attention_backward(dy[b.., s, (g r), d], \
    q[b.., s, (g r), d], k[b.., t, g, d], v[b.., t, g, d], y[b.., s, (g r), d], lse[b.., s, (g r)], ?segments[b.., s], ?key_segments[b.., t], \
    ?dlse[b.., s, (g r)]) \
    replicate(d) reduction(+: r, s, t) offset(s, t) causal(s, t: causal) linear(dy, dlse) dtype(lse: wide, dlse: wide, segments: integer, key_segments: integer) \
    types(f32, bf16) pitch(dq: s, dk: t, dv: t, q: s, k: t, v: t) operations((causal ? 5 : 10) * size(b) * size(g) * size(r) * size(s) * size(t) * size(d)) \
    kernel(ht_attention_backward_kernel) grad(none)
ht_attention_backward_result ht_attention_backward(ht_tensor dy, ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor y, ht_tensor lse,
                                                   ht_tensor segments, ht_tensor key_segments, ht_tensor dlse, bool causal);

static inline void ht_attention_gradient(ht_grad *g)
{
    ht_attention_backward_result d =
        ht_attention_backward(g->dy[0], g->x[0], g->x[1], g->x[2], g->y[0], g->y[1], g->x[3], g->x[4], g->dy[1], g->attr[0].i != 0);
    g->dx[0] = d.dq;
    g->dx[1] = d.dk;
    g->dx[2] = d.dv;
}

/* Computes attention of packed sequences; segments: (.., s) of queries and (.., t) of keys. */
static inline ht_tensor ht_attention_packed(ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor segments, ht_tensor key_segments, bool causal)
{
    assert(ht_is_integer(segments) && ht_is_integer(key_segments) && "segments are integers");
    return ht_attention_stats(q, k, v, segments, key_segments, causal).y;
}

/* Computes attention; queries and keys have the same segments, or HT_NONE. */
static inline ht_tensor ht_attention(ht_tensor q, ht_tensor k, ht_tensor v, ht_tensor segments, bool causal)
{
    if (!ht_present(segments))
        return ht_attention_stats(q, k, v, HT_NONE, HT_NONE, causal).y;
    assert(ht_extent(q, -3) == ht_extent(k, -3) && "with the same segments there are as many keys as queries");
    return ht_attention_packed(q, k, v, segments, segments, causal);
}

/* ---- loss ---- */

/* Returns the largest element of each row; no gradient flows. */
#pragma hspmd op peak[b..] = row_max(x[b.., v]) \
    reduction(max: v) neutral(x: logf(0)) dtype(peak: wide) types(f32, bf16) operations(size(b) * size(v)) kernel(ht_row_max_kernel) grad(none)
ht_tensor ht_row_max(ht_tensor x);

typedef struct ht_peak_mass_result {
    ht_tensor peak, mass, hit;
} ht_peak_mass_result;

/* Returns the largest element of each row (peak), and the results of ht_mass for that peak. Reads
 * each row once. */
#pragma hspmd op peak[b..], mass[b..], hit[b..] = peak_mass(x[b.., v], target[b..]) \
    replicate(v) offset(v, b) dtype(peak: wide, mass: wide, hit: wide, target: integer) types(f32, bf16) operations(4 * size(b) * size(v)) \
    kernel(ht_peak_mass_kernel) grad(none)
ht_peak_mass_result ht_peak_mass(ht_tensor x, ht_tensor target);

typedef struct ht_mass_result {
    ht_tensor mass, hit;
} ht_mass_result;

/* Returns, for each row, the sum of exp(x - peak) and the element at index target. The element is 0
 * where target is -100, or where another device holds it. */
#pragma hspmd op mass[b..], hit[b..] = mass(x[b.., v], target[b..], peak[b..]) \
    reduction(+: v) offset(v, b) dtype(mass: wide, hit: wide, peak: wide, target: integer) types(f32, bf16) \
    with(peak: ht_row_max, ht_peak_mass) operations(3 * size(b) * size(v)) kernel(ht_mass_kernel) grad(ht_mass_gradient)
ht_mass_result ht_mass(ht_tensor x, ht_tensor target, ht_tensor peak);

#pragma hspmd op dx[b.., v] = mass_backward(dmass[b..], dhit[b..], x[b.., v], target[b..], peak[b..]) \
    offset(v, b) linear(dmass, dhit) dtype(dx: x, dmass: wide, dhit: wide, peak: wide, target: integer) types(f32, bf16) inplace(dx: x) \
    operations(3 * size(b) * size(v)) kernel(ht_mass_backward_kernel) grad(none)
ht_tensor ht_mass_backward(ht_tensor dmass, ht_tensor dhit, ht_tensor x, ht_tensor target, ht_tensor peak);

/* No gradient flows to peak, since the loss does not depend on its value. */
static inline void ht_mass_gradient(ht_grad *g)
{
    g->dx[0] = ht_mass_backward(g->dy[0], g->dy[1], g->x[0], g->x[1], g->x[2]);
}

#pragma hspmd op loss[b..] = target[b..] == -100 ? 0 : logf(mass[b..]) + (peak[b..] - hit[b..]) dtype(loss: mass, hit: mass, peak: mass, target: integer)
ht_tensor ht_nll(ht_tensor mass, ht_tensor hit, ht_tensor peak, ht_tensor target);

/* Returns weight[target], or 0 where the target is not a class; `at` is 0, 1, 2, ... (ht_iota). */
#pragma hspmd op y[b..] = at[v] == target[b..] ? weight[v] : 0 dtype(y: weight, target: integer, at: integer)
ht_tensor ht_pick(ht_tensor weight, ht_tensor target, ht_tensor at);

/* Returns Huber's loss of a difference. */
#pragma hspmd op y[i..] = fabsf(x[i..]) >= delta ? delta * (fabsf(x[i..]) - 0.5f * delta) : 0.5f * x[i..] * x[i..]
ht_tensor ht_huber(ht_tensor x, float delta);

/* Returns -c target log(sigmoid(x)) - (1 - target) log(1 - sigmoid(x)) for targets in [0, 1], where
 * c is the factor of the positive term; the caller passes weight = 1 + (c - 1) target. */
#pragma hspmd op y[i..] = (1 - target[i..]) * x[i..] + weight[i..] * (log1pf(expf(-fabsf(x[i..]))) + fmaxf(-x[i..], 0))
ht_tensor ht_logistic(ht_tensor x, ht_tensor target, ht_tensor weight);

/* Returns target (log(target) - x), or 0 where the target is 0. */
#pragma hspmd op y[i..] = (target[i..] == 0 ? 0 : target[i..] * logf(target[i..])) - target[i..] * x[i..]
ht_tensor ht_divergence(ht_tensor x, ht_tensor target);

/* ---- shapes ---- */

/* Swaps dimensions first and second; first < second. */
#pragma hspmd op y[a..{first}, q, m..{second - first - 1}, p, z..] = x[a.., p, m.., q, z..]
ht_tensor ht_transpose_at(ht_tensor x, int first, int second);

/* Swaps dimensions d0 and d1; negative numbers count from the end. */
static inline ht_tensor ht_transpose(ht_tensor x, int d0, int d1)
{
    int first = d0 < 0 ? d0 + ht_rank(x) : d0;
    int second = d1 < 0 ? d1 + ht_rank(x) : d1;
    if (first == second)
        return x;
    return first < second ? ht_transpose_at(x, first, second) : ht_transpose_at(x, second, first);
}

/* Returns the elements [start, start + length) of dimension dim. */
#pragma hspmd op y[a..{dim}, i, z..] = slice(x[a.., n, z..]) \
    size(i: length) requires(start >= 0, start <= size(n) - length) replicate(n, i) shift(n, i: start) linear(x) types(f32, bf16, f64, i32, i64) \
    operations(0) reads(x: size(a) * size(i) * size(z)) kernel(ht_slice_kernel) grad(ht_slice_gradient)
ht_tensor ht_slice_at(ht_tensor x, int dim, int64_t start, int64_t length);

/* Pads dimension dim with zeros to `extent`; x begins at `start`. */
#pragma hspmd op y[a..{dim}, n, z..] = pad(x[a.., i, z..]) \
    size(n: extent) requires(start >= 0, start <= extent - size(i)) replicate(n, i) shift(n, i: start) linear(x) types(f32, bf16, f64, i32, i64) tiles(ht_concat_at: dim, start) \
    operations(0) kernel(ht_pad_kernel) grad(ht_pad_gradient)
ht_tensor ht_pad_at(ht_tensor x, int dim, int64_t start, int64_t extent);

static inline void ht_slice_gradient(ht_grad *g)
{
    g->dx[0] = ht_pad_at(g->dy[0], (int)g->attr[0].i, g->attr[1].i, ht_extent(g->x[0], (int)g->attr[0].i));
}

static inline void ht_pad_gradient(ht_grad *g)
{
    g->dx[0] = ht_slice_at(g->dy[0], (int)g->attr[0].i, g->attr[1].i, ht_extent(g->x[0], (int)g->attr[0].i));
}

/* Returns the elements [start, start + length) of a dimension (PyTorch's narrow); a negative dim
 * counts from the end. */
static inline ht_tensor ht_slice(ht_tensor x, int dim, int64_t start, int64_t length)
{
    assert(start >= 0 && length >= 0 && start <= ht_extent(x, dim) - length && "a slice lies within its dimension");
    return ht_slice_at(x, dim < 0 ? dim + ht_rank(x) : dim, start, length);
}

#pragma hspmd op y[a..{dim}, n, z..] = concat(xs[][a.., m, z..]) \
    size(n: +m) row(n) replicate(n, m) linear(xs) types(f32, bf16, f64, i32, i64) operations(0) kernel(ht_concat_kernel) grad(ht_concat_gradient)
ht_tensor ht_concat_at(ht_tensors xs, int dim);

static inline void ht_concat_gradient(ht_grad *g)
{
    int dim = (int)g->attr[0].i;
    int64_t total = ht_extent(g->y[0], dim), start = 0;
    for (int k = 0; start < total; k++) {
        int64_t length = ht_extent(g->x[k], dim);
        g->dx[k] = ht_slice_at(g->dy[0], dim, start, length);
        start += length;
    }
}

/* Concatenates tensors along dimension dim; a negative dim counts from the end. */
static inline ht_tensor ht_concat(ht_tensors xs, int dim)
{
    return ht_concat_at(xs, dim < 0 ? dim + ht_rank(xs.at[0]) : dim);
}

/* Returns 0, 1, ..., n - 1. */
#pragma hspmd op y[i] = iota() size(i: n) place(y: i) dtype(y: dtype) offset(i) operations(size(i)) kernel(ht_iota_kernel) grad(none)
ht_tensor ht_iota(int64_t n, ht_dtype dtype);

/* ---- indices ---- */

/* Operators that compare indices; `at` and `from` are 0, 1, 2, ... along their dimension. */

/* Returns x, a tensor of integers; an integer outside [0, end) ends the program. */
#pragma hspmd op y[i..] = within(x[i..]) offset(i) types(i32, i64) operations(0) kernel(ht_within_kernel) grad(none)
ht_tensor ht_within(ht_tensor x, int64_t end);

/* Returns y[k] = x[index[k]] along dimension dim; 0 where the index is outside [0, n). */
#pragma hspmd op y[a..{dim}, k, z..] = gather(x[a.., n, z..], index[a.., k, z..], at[n]) \
    reduction(+: n) linear(x) dtype(y: x, at: integer, index: integer) types(f32, bf16, f64, i32, i64) operations(0) \
    kernel(ht_gather_kernel) grad(ht_gather_gradient)
ht_tensor ht_gather_at(ht_tensor x, ht_tensor index, ht_tensor at, int dim);

/* Returns y: y[n] is the sum of x[k] with index[k] = n, along dimension dim. */
#pragma hspmd op y[a..{dim}, n, z..] = scatter(x[a.., k, z..], index[a.., k, z..], at[n]) \
    reduction(+: k) linear(x) dtype(y: x, at: integer, index: integer) types(f32, bf16, f64, i32, i64) \
    kernel(ht_scatter_kernel) grad(ht_scatter_gradient)
ht_tensor ht_scatter_at(ht_tensor x, ht_tensor index, ht_tensor at, int dim);

static inline void ht_gather_gradient(ht_grad *g)
{
    g->dx[0] = ht_scatter_at(g->dy[0], g->x[1], g->x[2], (int)g->attr[0].i);
}

static inline void ht_scatter_gradient(ht_grad *g)
{
    g->dx[0] = ht_gather_at(g->dy[0], g->x[1], g->x[2], (int)g->attr[0].i);
}

/* Returns y: y[k] is the sum of all x[n] with from[n] <= at[k], along dimension dim. */
#pragma hspmd op y[a..{dim}, k, z..] = cumsum(x[a.., n, z..], at[k], from[n]) \
    reduction(+: n) linear(x) causal(k, n: 1) neutral(x: 0) dtype(y: x, at: integer, from: integer) types(f32, f64, i32, i64) \
    operations(size(a) * (size(n) + size(k)) * size(z)) kernel(ht_cumsum_kernel) grad(ht_cumsum_gradient)
ht_tensor ht_cumsum_at(ht_tensor x, ht_tensor at, ht_tensor from, int dim);

/* Returns x, the gradient of ht_cumsum_at: x[n] is the sum of all y[k] with at[k] >= from[n]. */
#pragma hspmd op x[a..{dim}, n, z..] = cumsum_back(y[a.., k, z..], from[n], at[k]) \
    reduction(+: k) linear(y) causal(k, n: 1) neutral(y: 0) dtype(x: y, from: integer, at: integer) types(f32, f64, i32, i64) \
    operations(size(a) * (size(n) + size(k)) * size(z)) kernel(ht_cumsum_back_kernel) grad(ht_cumsum_back_gradient)
ht_tensor ht_cumsum_back_at(ht_tensor y, ht_tensor from, ht_tensor at, int dim);

static inline void ht_cumsum_gradient(ht_grad *g)
{
    g->dx[0] = ht_cumsum_back_at(g->dy[0], g->x[2], g->x[1], (int)g->attr[0].i);
}

static inline void ht_cumsum_back_gradient(ht_grad *g)
{
    g->dx[0] = ht_cumsum_at(g->dy[0], g->x[2], g->x[1], (int)g->attr[0].i);
}

/* Returns the rank of each element in a stable sort along dimension dim. The rank is the number of
 * smaller elements (larger ones under `descending`), plus that of equal elements before this one.
 * NaN is larger than all numbers. The caller passes x again as z. */
#pragma hspmd op y[a..{dim}, i, c..] = rank(x[a.., j, c..], z[a.., i, c..], at[i], from[j]) \
    reduction(+: j) dtype(y: i32, at: integer, from: integer) types(f32, bf16, f64, i32, i64) kernel(ht_rank_kernel) grad(none)
ht_tensor ht_rank_at(ht_tensor x, ht_tensor z, ht_tensor at, ht_tensor from, int dim, int descending);

/* Returns the diagonals x[i, i] of matrices in the last two dimensions. */
#pragma hspmd op y[b.., i] = at[i] == from[j] ? x[b.., i, j] : 0 dtype(y: x, at: integer, from: integer)
ht_tensor ht_diagonal_at(ht_tensor x, ht_tensor at, ht_tensor from);

#pragma hspmd op y[i.., c] = id[i..] == at[c] dtype(y: i64, id: integer, at: integer) grad(none)
ht_tensor ht_one_hot_at(ht_tensor id, ht_tensor at);

/* Returns x where column - row <= diagonal (`upper`: >= diagonal), else 0. */
#pragma hspmd op y[b.., i, j] = (upper ? at[j] - from[i] >= diagonal : at[j] - from[i] <= diagonal) ? x[b.., i, j] : 0 dtype(y: x, at: integer, from: integer)
ht_tensor ht_triangle_at(ht_tensor x, ht_tensor at, ht_tensor from, int64_t diagonal, int upper);

#pragma hspmd op y[i] = start + step * at[i] dtype(y: dtype, at: integer) grad(none)
ht_tensor ht_arange_at(ht_tensor at, double start, double step, ht_dtype dtype);

/* ---- products for einsum.h, images.h and layers.h ---- */

/* Multiplies two tensors: their first `batch` dimensions are equal; their last `inner` dimensions
 * are summed over. */
#pragma hspmd op y[b..{batch}, m.., n..] = x[b.., m.., k..{inner}] * w[b.., n.., k..]
ht_tensor ht_contract_at(ht_tensor x, ht_tensor w, int batch, int inner);

/* ---- convolutions ---- */

/* Slides z over images x, without flipping z: y[h, w] is the sum over p and q of z[p, q] *
 * x[h * sh + p * dh - ph, w * sw + q * dw - pw], where x is 0 outside its extents. g: groups;
 * i, o: input and output channels of a group; j, k: height and width of x; p, q: of z; h, w: of y.
 * `rows` and `columns` are the height and width of an operator's result. */
#pragma hspmd op y[b, g, o, h, w] = convolution(x[b, g, i, j, k], z[g, o, i, p, q]) \
    size(h: rows) size(w: columns) replicate(j, k, p, q, h, w) reduction(+: i) linear(x) types(f32, bf16, f64) \
    operations(2 * size(b) * size(g) * size(o) * size(h) * size(w) * size(i) * size(p) * size(q)) \
    kernel(ht_convolution_kernel) grad(ht_convolution_gradient)
ht_tensor ht_convolution_at(ht_tensor x, ht_tensor z, int64_t rows, int64_t columns, int sh, int sw, int ph, int pw, int dh, int dw);

/* Returns x, the gradient of ht_convolution_at with respect to images. */
#pragma hspmd op x[b, g, i, j, k] = convolution_images(y[b, g, o, h, w], z[g, o, i, p, q]) \
    size(j: rows) size(k: columns) replicate(j, k, p, q, h, w) reduction(+: o) linear(y) types(f32, bf16, f64) \
    operations(2 * size(b) * size(g) * size(o) * size(h) * size(w) * size(i) * size(p) * size(q)) \
    kernel(ht_convolution_images_kernel) grad(ht_convolution_images_gradient)
ht_tensor ht_convolution_images_at(ht_tensor y, ht_tensor z, int64_t rows, int64_t columns, int sh, int sw, int ph, int pw, int dh, int dw);

/* Returns z, the gradient of ht_convolution_at with respect to weights. */
#pragma hspmd op z[g, o, i, p, q] = convolution_weights(x[b, g, i, j, k], y[b, g, o, h, w]) \
    size(p: rows) size(q: columns) replicate(j, k, p, q, h, w) reduction(+: b) linear(y) dtype(z: wide) types(f32, bf16, f64) \
    operations(2 * size(b) * size(g) * size(o) * size(h) * size(w) * size(i) * size(p) * size(q)) \
    kernel(ht_convolution_weights_kernel) grad(ht_convolution_weights_gradient)
ht_tensor ht_convolution_weights_at(ht_tensor x, ht_tensor y, int64_t rows, int64_t columns, int sh, int sw, int ph, int pw, int dh, int dw);

/* Each of the three operators is linear in both operands, so its gradients are the other two. */
static inline ht_tensor ht_convolution_again(ht_grad *g, ht_tensor x, ht_tensor z, ht_tensor like)
{
    return ht_convolution_at(x, z, ht_extent(like, 3), ht_extent(like, 4), (int)g->attr[2].i, (int)g->attr[3].i, (int)g->attr[4].i,
                             (int)g->attr[5].i, (int)g->attr[6].i, (int)g->attr[7].i);
}

static inline ht_tensor ht_convolution_to_images(ht_grad *g, ht_tensor y, ht_tensor z, ht_tensor like)
{
    return ht_convolution_images_at(y, z, ht_extent(like, 3), ht_extent(like, 4), (int)g->attr[2].i, (int)g->attr[3].i, (int)g->attr[4].i,
                                    (int)g->attr[5].i, (int)g->attr[6].i, (int)g->attr[7].i);
}

static inline ht_tensor ht_convolution_to_weights(ht_grad *g, ht_tensor x, ht_tensor y, ht_tensor like)
{
    return ht_convolution_weights_at(x, y, ht_extent(like, 3), ht_extent(like, 4), (int)g->attr[2].i, (int)g->attr[3].i, (int)g->attr[4].i,
                                     (int)g->attr[5].i, (int)g->attr[6].i, (int)g->attr[7].i);
}

static inline void ht_convolution_gradient(ht_grad *g)
{
    g->dx[0] = ht_convolution_to_images(g, g->dy[0], g->x[1], g->x[0]);
    g->dx[1] = ht_convolution_to_weights(g, g->x[0], g->dy[0], g->x[1]);
}

static inline void ht_convolution_images_gradient(ht_grad *g)
{
    g->dx[0] = ht_convolution_again(g, g->dy[0], g->x[1], g->x[0]);
    g->dx[1] = ht_convolution_to_weights(g, g->dy[0], g->x[0], g->x[1]);
}

static inline void ht_convolution_weights_gradient(ht_grad *g)
{
    g->dx[0] = ht_convolution_to_images(g, g->x[1], g->dy[0], g->x[0]);
    g->dx[1] = ht_convolution_again(g, g->x[0], g->dy[0], g->x[1]);
}

/* Resamples dimension dim: each row of w gives one element of the result. */
#pragma hspmd op y[a..{dim}, o, z..] = x[a.., n, z..] * w[o, n]
ht_tensor ht_resample_at(ht_tensor x, ht_tensor w, int dim);

/* Return w of ht_resample_at: for means of bins, the nearest element, linear interpolation. */
#pragma hspmd op w[o, n] = from[n] < at[o] * size(n) / size(o) ? 0.0f : from[n] >= ((at[o] + 1) * size(n) + size(o) - 1) / size(o) ? 0.0f : \
    1.0f / (((at[o] + 1) * size(n) + size(o) - 1) / size(o) - at[o] * size(n) / size(o)) dtype(w: f32, at: integer, from: integer) grad(none)
ht_tensor ht_bins_at(ht_tensor at, ht_tensor from);

#pragma hspmd op w[o, n] = at[o] * size(n) / size(o) == from[n] ? 1.0f : 0.0f dtype(w: f32, at: integer, from: integer) grad(none)
ht_tensor ht_nearest_at(ht_tensor at, ht_tensor from);

#pragma hspmd op w[o, n] = fmaxf(0, 1 - fabsf(from[n] - \
    (corners ? at[o] * (size(n) - 1.0f) / fmaxf(1, size(o) - 1) : fminf(size(n) - 1, fmaxf(0, (at[o] + 0.5f) * size(n) / size(o) - 0.5f))))) \
    dtype(w: f32, at: integer, from: integer) grad(none)
ht_tensor ht_lines_at(ht_tensor at, ht_tensor from, int corners);

/* Return the scores of queries s and keys t, and the sums of the values v weighted by p. r query
 * heads share a key-value head g. */
#pragma hspmd op y[b, g, r, s, t] = q[b, s, g, r, d] * k[b, t, g, d]
ht_tensor ht_scores_at(ht_tensor q, ht_tensor k);

#pragma hspmd op y[b, s, g, r, d] = p[b, g, r, s, t] * v[b, t, g, d]
ht_tensor ht_values_at(ht_tensor p, ht_tensor v);

/* Returns x, with minus infinity where a query does not see a key. Under `causal`, a query sees no
 * later keys. With `window` > 0, a query sees keys at a distance below `window`. */
#pragma hspmd op y[b.., s, t] = (causal ? at[t] > from[s] : 0) ? logf(0) : \
    (window > 0 ? from[s] - at[t] >= window ? 1 : at[t] - from[s] >= window : 0) ? logf(0) : x[b.., s, t] dtype(y: x, at: integer, from: integer)
ht_tensor ht_hide_at(ht_tensor x, ht_tensor from, ht_tensor at, int causal, int64_t window);

/* ---- dropout ---- */

/* Sets elements to 0 with probability p, and divides the other elements by 1 - p. Returns x in
 * ht_infer. The dropped elements depend on the session's seed, the stream, the step and the
 * element's index in the whole tensor. */
#pragma hspmd op y[i..] = dropout(x[i..]) offset(i) linear(x) requires(p >= 0, p <= 1) types(f32, bf16) operations(2 * size(i)) kernel(ht_dropout_kernel) grad(ht_dropout_gradient)
ht_tensor ht_dropout_at(ht_tensor x, float p, int64_t stream);

static inline void ht_dropout_gradient(ht_grad *g)
{
    g->dx[0] = ht_dropout_at(g->dy[0], (float)g->attr[0].f, g->attr[1].i);
}

static inline ht_tensor ht_dropout(ht_tensor x, float p)
{
    assert(p >= 0 && p <= 1 && "the probability of ht_dropout is between 0 and 1");
    return p > 0 ? ht_dropout_at(x, p, ht_stream()) : x;
}

/* ---- optimizers ---- */

/* AdamW (Loshchilov and Hutter, 2019). norm, if present, is the square of the global gradient norm:
 * gradients are scaled by min(1, clip / (sqrt(norm) + 1e-6)). hyper: 0 learning rate, 1 beta1, 2
 * beta2, 3 eps, 4 weight decay, 5 clip, 6 whether the decay is added to the gradient (Adam). */
typedef struct ht_adamw_result {
    ht_tensor p1, m1, v1;
} ht_adamw_result;
#pragma hspmd op p1[i..], m1[i..], v1[i..] = adamw(p[i..], g[i..], m[i..], v[i..], ?norm[]) \
    inplace(p1: p, m1: m, v1: v) operations(15 * size(i)) kernel(ht_adamw_kernel) grad(none)
ht_adamw_result ht_adamw_update(ht_tensor p, ht_tensor g, ht_tensor m, ht_tensor v, ht_tensor norm, bool decay, int first);

/* Updates by stochastic gradient descent with momentum. hyper: 0 learning rate, 1 momentum, 2
 * weight decay (added to the gradient), 3 clip, 4 whether the momentum is Nesterov's. */
typedef struct ht_sgd_result {
    ht_tensor p1, m1;
} ht_sgd_result;
#pragma hspmd op p1[i..], m1[i..] = sgd(p[i..], g[i..], m[i..], ?norm[]) inplace(p1: p, m1: m) operations(6 * size(i)) kernel(ht_sgd_kernel) grad(none)
ht_sgd_result ht_sgd_update(ht_tensor p, ht_tensor g, ht_tensor m, ht_tensor norm, bool decay, int first);

/* Lion (Chen et al., 2023). hyper: 0 learning rate, 1 beta1, 2 beta2, 3 weight decay, 4 clip. */
typedef struct ht_lion_result {
    ht_tensor p1, m1;
} ht_lion_result;
#pragma hspmd op p1[i..], m1[i..] = lion(p[i..], g[i..], m[i..], ?norm[]) inplace(p1: p, m1: m) operations(9 * size(i)) kernel(ht_lion_kernel) grad(none)
ht_lion_result ht_lion_update(ht_tensor p, ht_tensor g, ht_tensor m, ht_tensor norm, bool decay, int first);

ht_kernel ht_adamw_kernel, ht_sgd_kernel, ht_lion_kernel;

/* ht_hyper returns hyper-parameter `index`, which may differ between steps. ht_steps returns the
 * number of steps before this one. Only rules of optimizers call these. */
#pragma hspmd op y[] = hyper() dtype(y: f32) kernel(ht_hyper_kernel) grad(none)
ht_tensor ht_hyper(int index);

#pragma hspmd op y[] = steps() dtype(y: f32) kernel(ht_steps_kernel) grad(none)
ht_tensor ht_steps(void);

typedef struct ht_adamw_options {
    float lr, beta1, beta2, eps, decay;
    float clip; // the largest global gradient norm; 0: no clipping
} ht_adamw_options;

typedef struct ht_sgd_options {
    float lr, momentum, decay;
    float clip; // the largest global gradient norm; 0: no clipping
    bool nesterov;
} ht_sgd_options;

typedef struct ht_lion_options {
    float lr, beta1, beta2, decay;
    float clip; // the largest global gradient norm; 0: no clipping
} ht_lion_options;

static inline ht_optimizer ht_adamw_with(ht_adamw_options o)
{
    return (ht_optimizer){.name = "adamw", .update = (void (*)(void))ht_adamw_update, .states = 2, .clipped = o.clip > 0, .kernel = ht_adamw_kernel, .hyper = {o.lr, o.beta1, o.beta2, o.eps, o.decay, o.clip}};
}

static inline ht_optimizer ht_adam_with(ht_adamw_options o)
{
    return (ht_optimizer){.name = "adam", .update = (void (*)(void))ht_adamw_update, .states = 2, .clipped = o.clip > 0, .kernel = ht_adamw_kernel, .hyper = {o.lr, o.beta1, o.beta2, o.eps, o.decay, o.clip, 1}};
}

static inline ht_optimizer ht_sgd_with(ht_sgd_options o)
{
    return (ht_optimizer){.name = "sgd", .update = (void (*)(void))ht_sgd_update, .states = 1, .clipped = o.clip > 0, .kernel = ht_sgd_kernel, .hyper = {o.lr, o.momentum, o.decay, o.clip, o.nesterov}};
}

static inline ht_optimizer ht_lion_with(ht_lion_options o)
{
    return (ht_optimizer){.name = "lion", .update = (void (*)(void))ht_lion_update, .states = 1, .clipped = o.clip > 0, .kernel = ht_lion_kernel, .hyper = {o.lr, o.beta1, o.beta2, o.decay, o.clip}};
}

/* ht_adamw(.lr = 3e-4f, .clip = 1): arguments that are not given have PyTorch's defaults. */
#define ht_adamw(...) \
    ht_adamw_with((ht_adamw_options){.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .decay = 0.01f, .clip = 0 __VA_OPT__(,) __VA_ARGS__})
#define ht_adam(...) \
    ht_adam_with((ht_adamw_options){.lr = 1e-3f, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .decay = 0, .clip = 0 __VA_OPT__(,) __VA_ARGS__})
#define ht_lion(...) ht_lion_with((ht_lion_options){.lr = 1e-4f, .beta1 = 0.9f, .beta2 = 0.99f, .decay = 0, .clip = 0 __VA_OPT__(,) __VA_ARGS__})
#define ht_sgd(...) ht_sgd_with((ht_sgd_options){.lr = 1e-3f, .momentum = 0, .decay = 0, .clip = 0 __VA_OPT__(,) __VA_ARGS__})

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Woverride-init" /* a given argument overrides its default in the macro */
#endif

#endif
