/* layers.h: layers, made of operators: batch, group and instance norm, attention with masks. Layer
 * norm and RMS norm are operators in ops.h. Included by hetu.h.
 *
 * There is no layer for a mixture of experts: the model makes it of operators, with a capacity of
 * its own. Each expert takes the first CAPACITY tokens of a row; ht_one_hot(slot, CAPACITY) is 0
 * for later ones, which are dropped (tools/manual/experts.md, test/users/models/moe.c).
 *
 * Names and meanings are PyTorch's unless a comment says otherwise; images are (batch, channels,
 * height, width).
 */
#ifndef HETU_LAYERS_H
#define HETU_LAYERS_H

#include <hetu/reductions.h>

#include <math.h>

/* ---- norms ---- */

/* Returns (x - mean) / sqrt(variance + eps) over the dimensions `dim`. */
static inline ht_tensor ht_standardized(ht_tensor x, ht_dims dim, float eps)
{
    ht_tensor off = ht_sub(x, ht_mean_over(x, (ht_over){dim, true}));
    ht_tensor variance = ht_mean_over(ht_mul(off, off), (ht_over){dim, true});
    return ht_mul(off, ht_rsqrt(ht_add(variance, ht_scalar(eps))));
}

/* Returns x * weight + bias for each channel; weight and bias: (channels) or HT_NONE. */
static inline ht_tensor ht_by_channel(ht_tensor x, ht_tensor weight, ht_tensor bias)
{
    ht_dims dims = {ht_rank(x) - 1, {ht_extent(x, 1), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    x = ht_present(weight) ? ht_mul(x, ht_reshape(weight, dims)) : x;
    return ht_present(bias) ? ht_add(x, ht_reshape(bias, dims)) : x;
}

/* Returns the numbers of all dimensions of x except dimension 1, the channels. */
static inline ht_dims ht_dims_of_channels(ht_tensor x)
{
    ht_dims dim = {0};
    for (int d = 0; d < ht_rank(x); d++)
        if (d != 1)
            dim.extent[dim.rank++] = d;
    assert(dim.rank > 0 && dim.rank < ht_rank(x) && "channels stand in dimension 1, behind the batch");
    return dim;
}

/* Mean of each channel over the whole batch, and the sum of squared distances from the mean. */
typedef struct ht_moments {
    ht_tensor mean, squares;
    int64_t count; // elements of a channel
} ht_moments;

static inline ht_moments ht_moments_of(ht_tensor x)
{
    int64_t count = ht_count_over(x, (ht_over){ht_dims_of_channels(x), false});
    assert(count > 1 && "batch norm needs more than one element of each channel");
    ht_tensor mean = ht_scale(ht_channel_sums(x), (float)(1 / (double)count));
    return (ht_moments){mean, ht_channel_squares(x, mean), count};
}

static inline ht_tensor ht_normed_by(ht_moments m, ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    ht_tensor variance = ht_scale(m.squares, (float)(1 / (double)m.count));
    weight = ht_present(weight) ? weight : ht_full(ht_dims_of(m.mean), 1, ht_dtype_of(m.mean));
    return ht_channel_norm(x, m.mean, ht_rsqrt(ht_add(variance, ht_scalar(eps))), weight, bias);
}

/* Normalizes channels by mean and variance of the whole batch, over all devices (SyncBatchNorm). */
static inline ht_tensor ht_batch_norm(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    return ht_normed_by(ht_moments_of(x), x, weight, bias, eps);
}

typedef struct ht_running_options {
    const char *name;
    bool training;
    float momentum, eps;
} ht_running_options;

/* Updates a running mean: state += momentum * (value - state). */
static inline void ht_run_towards(ht_tensor state, ht_tensor value, float momentum)
{
    ht_assign(state, ht_add(state, ht_mul(ht_sub(value, state), ht_scalar(momentum))));
}

static inline ht_tensor ht_batch_norm_with(ht_tensor x, ht_tensor weight, ht_tensor bias, ht_running_options o)
{
    ht_scope("%s", o.name);
    ht_dims channels = {1, {ht_extent(x, 1)}};
    ht_tensor mean = ht_state(channels, ht_zeros(), "mean"), variance = ht_state(channels, ht_ones(), "variance");
    if (!o.training) {
        x = ht_by_channel(x, HT_NONE, ht_neg(mean));
        return ht_by_channel(ht_by_channel(x, ht_rsqrt(ht_add(variance, ht_scalar(o.eps))), HT_NONE), weight, bias);
    }
    ht_moments m = ht_moments_of(x);
    ht_run_towards(mean, m.mean, o.momentum);
    ht_run_towards(variance, ht_scale(m.squares, (float)(1 / (double)(m.count - 1))), o.momentum);
    return ht_normed_by(m, x, weight, bias, o.eps);
}

/* Applies batch norm with running statistics, as PyTorch's. In training, normalizes by the batch's
 * mean and variance, and updates the states NAME.mean and NAME.variance; else normalizes by these
 * states. ht_batch_norm_running(x, weight, bias, "norm", training, .momentum = 0.1f) */
#define ht_batch_norm_running(x, weight, bias, name_, training_, ...) \
    ht_batch_norm_with((x), (weight), (bias), (ht_running_options){.name = (name_), .training = (training_), .momentum = 0.1f, .eps = 1e-5f __VA_OPT__(,) __VA_ARGS__})

static inline ht_tensor ht_group_norm(ht_tensor x, int64_t groups, ht_tensor weight, ht_tensor bias, float eps)
{
    ht_dims dims = ht_dims_of(x), split = {dims.rank + 1, {0}}, dim = {0};
    assert(groups > 0 && dims.extent[1] % groups == 0 && "channels come in groups of one size");
    split.extent[0] = dims.extent[0];
    split.extent[1] = groups;
    split.extent[2] = dims.extent[1] / groups;
    for (int d = 2; d < dims.rank; d++)
        split.extent[d + 1] = dims.extent[d];
    for (int d = 2; d < split.rank; d++)
        dim.extent[dim.rank++] = d;
    return ht_by_channel(ht_reshape(ht_standardized(ht_reshape(x, split), dim, eps), dims), weight, bias);
}

static inline ht_tensor ht_instance_norm(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    ht_dims dim = {0};
    for (int d = 2; d < ht_rank(x); d++)
        dim.extent[dim.rank++] = d;
    assert(dim.rank > 0 && ht_count_over(x, (ht_over){dim, false}) > 1 &&
           "instance norm needs more than one element of each channel of an image");
    return ht_by_channel(ht_standardized(x, dim, eps), weight, bias);
}

/* ---- attention ---- */

typedef struct ht_attention_options {
    ht_tensor mask; // broadcast to (batch, heads, queries, keys): integers: 0 hides a key from a query; floating point: added to the scores
    bool causal;    // query i sees keys 0 to i
    int64_t window; // a query sees keys at a distance below `window`; 0: at any distance
    float scale;    // factor of the scores; 0: 1 / sqrt(width)
    float soft_cap; // scores s become soft_cap * tanh(s / soft_cap); 0: no cap
} ht_attention_options;

/* Computes attention of q (batch, queries, heads, width) to k and v (batch, keys, heads, width),
 * with options that ht_attention lacks. Unlike ht_attention, stores the scores (batch, heads,
 * queries, keys). The number of query heads is a multiple of that of key-value heads. The result is
 * 0 for a query that sees no key. */
static inline ht_tensor ht_masked_attention_with(ht_tensor q, ht_tensor k, ht_tensor v, ht_attention_options o)
{
    assert(ht_rank(q) == 4 && ht_rank(k) == 4 && ht_rank(v) == 4 && "ht_masked_attention takes tensors of four dimensions");
    int64_t batch = ht_extent(q, 0), queries = ht_extent(q, 1), heads = ht_extent(q, 2), width = ht_extent(q, 3), keys = ht_extent(k, 1),
            groups = ht_extent(k, 2);
    assert(groups > 0 && heads % groups == 0 && "query heads are a multiple of key-value heads");
    ht_tensor grouped = ht_reshape(q, ht_shape(batch, queries, groups, heads / groups, width));
    ht_tensor scores = ht_scale(ht_scores_at(grouped, k), o.scale != 0 ? o.scale : 1 / sqrtf((float)width));
    if (o.soft_cap > 0)
        scores = ht_scale(ht_tanh(ht_scale(scores, 1 / o.soft_cap)), o.soft_cap);
    ht_dims shape = ht_shape(batch, heads, queries, keys), split = ht_dims_of(scores);
    if (ht_present(o.mask)) {
        ht_tensor mask = ht_reshape(ht_expand(o.mask, shape), split);
        scores = ht_is_integer(mask) ? ht_where(mask, scores, ht_scalar(-INFINITY)) : ht_add(scores, mask);
    }
    if (o.causal || o.window > 0)
        scores = ht_hide_at(scores, ht_iota(queries, HT_I64), ht_iota(keys, HT_I64), o.causal, o.window);
    ht_tensor blind = ht_eq(ht_max_over(ht_detach(scores), (ht_over){ht_shape(-1), true}), ht_scalar(-INFINITY));
    ht_tensor share = ht_masked_fill(ht_softmax(ht_masked_fill(scores, blind, 0)), blind, 0);
    return ht_reshape(ht_values_at(share, v), ht_shape(batch, queries, heads, ht_extent(v, 3)));
}

#define ht_masked_attention(q, k, v, ...)                                                                                                  \
    ht_masked_attention_with((q), (k), (v), (ht_attention_options){.window = 0 __VA_OPT__(, ) __VA_ARGS__})

#endif
