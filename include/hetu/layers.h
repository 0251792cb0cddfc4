/* layers.h: layers, made of operators: einsum, convolutions, pooling, resampling, norms, attention.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise; images are (batch, channels,
 * height, width). Arguments that PyTorch lets one leave out are named: ht_conv2d(x, w, bias,
 * .stride = {2, 2}), for the height and the width.
 */
#ifndef HETU_LAYERS_H
#define HETU_LAYERS_H

#include <hetu/tensors.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- einsum ---- */

/* A tensor with a letter for each dimension. */
typedef struct ht_lettered {
    ht_tensor x;
    char letters[3 * HT_MAX_RANK + 1];
} ht_lettered;

/* Permutes the dimensions into the order of `letters`, and sums over the dimensions that `letters`
 * lacks. */
static inline ht_lettered ht_letters_ordered(ht_lettered of, const char *letters)
{
    ht_lettered to = {of.x, ""};
    ht_dims order = {0};
    int kept = 0;
    for (int d = (int)strlen(of.letters) - 1; d >= 0; d--)
        if (!strchr(letters, of.letters[d]))
            to.x = ht_sum_at(to.x, d, 1);
    for (int d = 0; of.letters[d]; d++)
        if (strchr(letters, of.letters[d]))
            of.letters[kept++] = of.letters[d];
    of.letters[kept] = 0;
    for (int d = 0; letters[d]; d++) {
        const char *at = strchr(of.letters, letters[d]);
        assert(at && "each letter of einsum's result stands in an operand");
        order.extent[order.rank++] = at - of.letters;
    }
    strcpy(to.letters, letters);
    to.x = ht_permute(to.x, order);
    return to;
}

/* Appends to `to` the letters of `from` that a has (in_a) or lacks, and b has (in_b) or lacks. */
static inline void ht_letters_pick(char *to, const char *from, const char *a, bool in_a, const char *b, bool in_b)
{
    int count = (int)strlen(to);
    for (int d = 0; from[d]; d++)
        if ((strchr(a, from[d]) != NULL) == in_a && (strchr(b, from[d]) != NULL) == in_b)
            to[count++] = from[d];
    to[count] = 0;
}

/* Multiplies two tensors, and sums over the letters of both that `wanted` lacks: "bij" and "bjk"
 * with wanted "bik" give "bik". */
static inline ht_lettered ht_letters_product(ht_lettered a, ht_lettered b, const char *wanted)
{
    char both[HT_MAX_RANK + 1] = "", inner[HT_MAX_RANK + 1] = "", first[HT_MAX_RANK + 1] = "", second[HT_MAX_RANK + 1] = "";
    ht_letters_pick(both, a.letters, b.letters, true, wanted, true);
    ht_letters_pick(inner, a.letters, b.letters, true, wanted, false);
    ht_letters_pick(first, a.letters, b.letters, false, wanted, true);
    ht_letters_pick(second, b.letters, a.letters, false, wanted, true);
    char of_a[3 * HT_MAX_RANK + 1], of_b[3 * HT_MAX_RANK + 1];
    ht_lettered y;
    snprintf(of_a, sizeof of_a, "%s%s%s", both, first, inner);
    snprintf(of_b, sizeof of_b, "%s%s%s", both, second, inner);
    assert(strlen(both) + strlen(first) + strlen(second) <= HT_MAX_RANK && "einsum's products have at most 12 dimensions");
    snprintf(y.letters, sizeof y.letters, "%s%s%s", both, first, second);
    y.x = ht_contract_at(ht_letters_ordered(a, of_a).x, ht_letters_ordered(b, of_b).x, (int)strlen(both), (int)strlen(inner));
    return y;
}

/* Reads the letters of an operand or of the result, up to a comma, an arrow or the end, and returns
 * where it stopped. "..." becomes `unnamed` letters, '0' + HT_MAX_RANK - unnamed and the following
 * ones, so that operands align at the last dimension of "...". */
static inline const char *ht_letters_read(char *to, const char *text, int unnamed)
{
    int count = 0;
    for (; *text && *text != ',' && *text != '-'; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        assert((letter || *text == ' ' || (text[0] == '.' && text[1] == '.' && text[2] == '.')) &&
               "einsum's text has letters, commas, an arrow and ...");
        if (letter)
            to[count++] = *text;
        for (int k = HT_MAX_RANK - unnamed; *text == '.' && k < HT_MAX_RANK; k++)
            to[count++] = (char)('0' + k);
        text += *text == '.' ? 2 : 0;
    }
    to[count] = 0;
    return text;
}

/* Counts the letters before a comma, an arrow or the end. */
static inline int ht_letters_count(const char *text)
{
    int count = 0;
    for (; *text && *text != ',' && *text != '-'; text++)
        count += *text != ' ' && *text != '.';
    return count;
}

/* Takes the diagonal of each letter that occurs twice; the diagonal becomes the last dimension:
 * "iji" becomes "ji". */
static inline ht_lettered ht_letters_diagonal(ht_lettered x)
{
    for (int d = 0; x.letters[d]; d++) {
        const char *again = strchr(x.letters + d + 1, x.letters[d]);
        if (!again)
            continue;
        ht_dims order = {0};
        char letter = x.letters[d];
        int second = (int)(again - x.letters), kept = 0;
        for (int k = 0; x.letters[k]; k++)
            if (k != d && k != second) {
                order.extent[order.rank++] = k;
                x.letters[kept++] = x.letters[k];
            }
        order.extent[order.rank++] = d;
        order.extent[order.rank++] = second;
        x.letters[kept] = letter;
        x.letters[kept + 1] = 0;
        x.x = ht_permute(x.x, order);
        assert(ht_extent(x.x, -1) == ht_extent(x.x, -2) && "a letter of ht_einsum has one extent");
        x.x = ht_diagonal_at(x.x, ht_iota(ht_extent(x.x, -1), HT_I64), ht_iota(ht_extent(x.x, -1), HT_I64));
        d = -1;
    }
    return x;
}

/* Broadcasts a dimension of extent 1 to the extent that another of the tensors has for the same
 * letter. */
static inline ht_tensor ht_letters_expanded(const ht_lettered *all, int count, ht_lettered x)
{
    ht_dims dims = ht_dims_of(x.x);
    for (int d = 0; d < dims.rank; d++)
        for (int k = 0; k < count; k++) {
            const char *at = strchr(all[k].letters, x.letters[d]);
            if (at && dims.extent[d] == 1)
                dims.extent[d] = ht_extent(all[k].x, (int)(at - all[k].letters));
        }
    return ht_expand(x.x, dims);
}

/* ht_einsum("bij,bjk->bik", ht_list(x, w)): products of the operands, summed over the letters that
 * the result lacks, from left to right. A letter that stands twice in an operand takes the
 * diagonal; "..." stands for all dimensions without a letter; extents of 1 are broadcast. Without
 * "->" the result has those of "...", and then the letters that stand once, in their order. */
static inline ht_tensor ht_einsum(const char *text, ht_tensors xs)
{
    enum { MOST = 16 };
    ht_lettered all[MOST], y = {HT_NONE, ""};
    char result[64] = "", rest[1024];
    const char *arrow = strstr(text, "->"), *at = text;
    int unnamed = 0;
    assert(xs.count > 0 && xs.count <= MOST && "ht_einsum takes 1 to 16 tensors");
    for (int k = 0; k < xs.count; k++) {
        int more = ht_rank(xs.at[k]) - ht_letters_count(at);
        assert(more >= 0 && "einsum's text has a letter for each dimension");
        all[k] = (ht_lettered){xs.at[k], ""};
        at = ht_letters_read(all[k].letters, at, more);
        assert((int)strlen(all[k].letters) == ht_rank(xs.at[k]) && "einsum's text has a letter for each dimension");
        assert((k + 1 < xs.count ? *at == ',' : !*at || at == arrow) && "einsum's text has as many operands as there are tensors");
        at += *at == ',';
        unnamed = more > unnamed ? more : unnamed;
        all[k] = ht_letters_diagonal(all[k]);
    }
    if (arrow)
        assert(!*ht_letters_read(result, arrow + 2, unnamed) && "behind the arrow of einsum's text stands the result");
    for (int k = HT_MAX_RANK - unnamed; !arrow && k < HT_MAX_RANK; k++)
        result[strlen(result)] = (char)('0' + k);
    for (char letter = 'A'; !arrow && letter <= 'z'; letter++) {
        const char *once = strchr(text, letter);
        if (once && !strchr(once + 1, letter))
            result[strlen(result)] = letter;
    }
    for (int d = 0; result[d]; d++)
        assert(!strchr(result + d + 1, result[d]) && "a letter stands once in the result of ht_einsum");
    for (int k = 0; k < xs.count; k++) {
        ht_lettered x = all[k];
        x.x = ht_letters_expanded(all, xs.count, x);
        strcpy(rest, result);
        for (int later = k + 1; later < xs.count; later++)
            strcat(rest, all[later].letters);
        y = k ? ht_letters_product(y, x, rest) : x;
    }
    return ht_letters_ordered(y, result).x;
}

/* ---- windows ---- */

/* Returns `count` elements along a dimension: start, start + stride, and so on. */
static inline ht_tensor ht_strided(ht_tensor x, int dim, int64_t start, int64_t stride, int64_t count)
{
    if (stride == 1)
        return ht_slice_at(x, dim, start, count);
    ht_dims dims = ht_dims_of(x);
    for (int d = dims.rank++; d > dim + 1; d--)
        dims.extent[d] = dims.extent[d - 1];
    dims.extent[dim] = count;
    dims.extent[dim + 1] = stride;
    ht_tensor steps = ht_reshape(ht_slice_at(x, dim, start, count * stride), dims);
    return ht_squeeze_at(ht_slice_at(steps, dim + 1, 0, 1), dim + 1);
}

/* Sliding window along a dimension, in elements. */
typedef struct ht_window {
    int64_t size, stride, padding, dilation;
} ht_window;

/* Replaces a dimension by two: the position within a window, and the window's number (PyTorch's
 * unfold). Padding has `value`. Size 3, stride 1 and padding 0 turn (8) into (3, 6). */
static inline ht_tensor ht_windows(ht_tensor x, int dim, ht_window w, double value)
{
    enum { MOST = 256 };
    ht_tensor parts[MOST];
    int64_t n = ht_extent(x, dim), reach = (w.size - 1) * w.dilation, count = (n + 2 * w.padding - reach - 1) / w.stride + 1;
    assert(w.size > 0 && w.size <= MOST && w.stride > 0 && w.dilation > 0 && w.padding >= 0 &&
           "windows have 1 to 256 elements, and go forward");
    assert(n + 2 * w.padding > reach && "a window is no larger than what it goes along");
    int64_t behind = reach + count * w.stride - n - w.padding;
    ht_dims pads = {0};
    pads.rank = 2 * (ht_rank(x) - dim);
    pads.extent[pads.rank - 2] = w.padding;
    pads.extent[pads.rank - 1] = behind > 0 ? behind : 0;
    ht_tensor padded = ht_pad(x, pads, value);
    for (int k = 0; k < w.size; k++)
        parts[k] = ht_strided(padded, dim, k * w.dilation, w.stride, count);
    return ht_stack((ht_tensors){(int)w.size, parts}, dim);
}

/* ---- convolutions ---- */

typedef struct ht_conv_options {
    int stride[2], padding[2], dilation[2];
    int groups;
} ht_conv_options;

static inline ht_window ht_window_of(int64_t size, const int *stride, const int *padding, const int *dilation, int d)
{
    return (ht_window){size, stride[d], padding[d], dilation[d]};
}

/* Convolves x (batch, inputs, h, w) with w (outputs, inputs / groups, h, w), without flipping w,
 * and adds bias (outputs), which may be HT_NONE. */
static inline ht_tensor ht_conv2d_with(ht_tensor x, ht_tensor w, ht_tensor bias, ht_conv_options o)
{
    int64_t groups = o.groups, inputs = ht_extent(w, 1), outputs = ht_extent(w, 0);
    assert(ht_rank(x) == 4 && ht_rank(w) == 4 && "ht_conv2d takes images and kernels of four dimensions");
    assert(groups > 0 && outputs % groups == 0 && ht_extent(x, 1) == inputs * groups && "channels are those of the kernel, in groups");
    ht_tensor rows = ht_windows(x, 2, ht_window_of(ht_extent(w, 2), o.stride, o.padding, o.dilation, 0), 0);
    ht_tensor all = ht_windows(rows, 4, ht_window_of(ht_extent(w, 3), o.stride, o.padding, o.dilation, 1), 0);
    ht_dims in = ht_dims_of(all), of = ht_dims_of(w);
    ht_tensor grouped = ht_reshape(all, ht_shape(in.extent[0], groups, inputs, in.extent[2], in.extent[3], in.extent[4], in.extent[5]));
    ht_tensor kernel = ht_reshape(w, ht_shape(groups, outputs / groups, inputs, of.extent[2], of.extent[3]));
    ht_tensor y = ht_reshape(ht_correlate_at(grouped, kernel), ht_shape(in.extent[0], outputs, in.extent[3], in.extent[5]));
    return ht_present(bias) ? ht_add(y, ht_reshape(bias, ht_shape(outputs, 1, 1))) : y;
}

/* Convolves x (batch, inputs, n) with w (outputs, inputs / groups, n); each option's first number
 * counts. */
static inline ht_tensor ht_conv1d_with(ht_tensor x, ht_tensor w, ht_tensor bias, ht_conv_options o)
{
    ht_conv_options flat = {{1, o.stride[0]}, {0, o.padding[0]}, {1, o.dilation[0]}, o.groups};
    return ht_squeeze_at(ht_conv2d_with(ht_unsqueeze(x, 2), ht_unsqueeze(w, 2), bias, flat), 2);
}

#define ht_conv2d(x, w, bias, ...)                                                                                                         \
    ht_conv2d_with((x), (w), (bias), (ht_conv_options){.stride = {1, 1}, .dilation = {1, 1}, .groups = 1 __VA_OPT__(, ) __VA_ARGS__})
#define ht_conv1d(x, w, bias, ...)                                                                                                         \
    ht_conv1d_with((x), (w), (bias), (ht_conv_options){.stride = {1, 1}, .dilation = {1, 1}, .groups = 1 __VA_OPT__(, ) __VA_ARGS__})

/* ---- pooling ---- */

typedef struct ht_pool_options {
    int size[2], stride[2], padding[2], dilation[2]; // stride 0: the size
} ht_pool_options;

static inline ht_window ht_pool_window(ht_pool_options o, int d)
{
    return ht_window_of(o.size[d], o.stride[d] ? o.stride : o.size, o.padding, o.dilation, d);
}

static inline ht_tensor ht_max_pool2d_with(ht_tensor x, ht_pool_options o)
{
    for (int d = 1; d >= 0; d--)
        x = ht_first_max(ht_windows(x, 2 + d, ht_pool_window(o, d), -INFINITY), 2 + d);
    return x;
}

/* Averages include the zeros of the padding. */
static inline ht_tensor ht_avg_pool2d_with(ht_tensor x, ht_pool_options o)
{
    for (int d = 1; d >= 0; d--)
        x = ht_mean_over(ht_windows(x, 2 + d, ht_pool_window(o, d), 0), (ht_over){ht_shape(2 + d), false});
    return x;
}

#define ht_max_pool2d(x, ...) ht_max_pool2d_with((x), (ht_pool_options){.dilation = {1, 1}, .size = __VA_ARGS__})
#define ht_avg_pool2d(x, ...) ht_avg_pool2d_with((x), (ht_pool_options){.dilation = {1, 1}, .size = __VA_ARGS__})

/* ---- resampling ---- */

/* Averages a dimension down to `size` bins: element o is the sum of x weighted by row o of a (size,
 * extent) matrix. */
static inline ht_tensor ht_adaptive_avg_pool(ht_tensor x, int dim, int64_t size)
{
    return ht_resample_at(x, ht_bins_at(ht_iota(size, HT_I64), ht_iota(ht_extent(x, dim), HT_I64)), dim);
}

static inline ht_tensor ht_adaptive_avg_pool2d(ht_tensor x, int64_t height, int64_t width)
{
    return ht_adaptive_avg_pool(ht_adaptive_avg_pool(x, 2, height), 3, width);
}

/* PyTorch's interpolate of images to a size: by the nearest element, or by straight lines. */
static inline ht_tensor ht_upsample_nearest(ht_tensor x, int64_t height, int64_t width)
{
    for (int d = 2; d < 4; d++)
        x = ht_resample_at(x, ht_nearest_at(ht_iota(d == 2 ? height : width, HT_I64), ht_iota(ht_extent(x, d), HT_I64)), d);
    return x;
}

static inline ht_tensor ht_upsample_bilinear(ht_tensor x, int64_t height, int64_t width, bool align_corners)
{
    for (int d = 2; d < 4; d++)
        x = ht_resample_at(x, ht_lines_at(ht_iota(d == 2 ? height : width, HT_I64), ht_iota(ht_extent(x, d), HT_I64), align_corners), d);
    return x;
}

/* ---- norms ---- */

/* Returns (x - mean) / sqrt(variance + eps) over the dimensions `dim`. */
static inline ht_tensor ht_standardized(ht_tensor x, ht_dims dim, float eps)
{
    ht_tensor off = ht_sub(x, ht_mean_over(x, (ht_over){dim, true}));
    ht_tensor variance = ht_mean_over(ht_mul(off, off), (ht_over){dim, true});
    return ht_mul(off, ht_rsqrt(ht_add(variance, ht_scalar(eps))));
}

/* Returns x * weight + bias, both of shape (channels), along dimension 1; both may be HT_NONE. */
static inline ht_tensor ht_by_channel(ht_tensor x, ht_tensor weight, ht_tensor bias)
{
    ht_dims dims = {ht_rank(x) - 1, {ht_extent(x, 1), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    x = ht_present(weight) ? ht_mul(x, ht_reshape(weight, dims)) : x;
    return ht_present(bias) ? ht_add(x, ht_reshape(bias, dims)) : x;
}

/* Returns all dimensions except that of the channels, dimension 1. */
static inline ht_dims ht_dims_of_channels(ht_tensor x)
{
    ht_dims dim = {0};
    for (int d = 0; d < ht_rank(x); d++)
        if (d != 1)
            dim.extent[dim.rank++] = d;
    assert(dim.rank > 0 && dim.rank < ht_rank(x) && "channels stand in dimension 1, behind the batch");
    return dim;
}

/* Normalizes each channel by the mean and variance of the whole batch, over all devices
 * (SyncBatchNorm). */
static inline ht_tensor ht_batch_norm(ht_tensor x, ht_tensor weight, ht_tensor bias, float eps)
{
    assert(ht_count_over(x, (ht_over){ht_dims_of_channels(x), false}) > 1 && "batch norm needs more than one element of each channel");
    return ht_by_channel(ht_standardized(x, ht_dims_of_channels(x), eps), weight, bias);
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
    ht_dims channels = {1, {ht_extent(x, 1)}}, dim = ht_dims_of_channels(x);
    ht_tensor mean = ht_state(channels, ht_zeros(), "mean"), variance = ht_state(channels, ht_ones(), "variance");
    if (!o.training) {
        x = ht_by_channel(x, HT_NONE, ht_neg(mean));
        return ht_by_channel(ht_by_channel(x, ht_rsqrt(ht_add(variance, ht_scalar(o.eps))), HT_NONE), weight, bias);
    }
    ht_run_towards(mean, ht_mean(x, .dim = dim), o.momentum);
    ht_run_towards(variance, ht_var(x, .dim = dim), o.momentum);
    return ht_batch_norm(x, weight, bias, o.eps);
}

/* Batch norm with running statistics, as PyTorch's. In training, normalizes by the batch's mean and
 * variance, and updates the states NAME.mean and NAME.variance; else normalizes by these states.
 * ht_batch_norm_running(x, weight, bias, "norm", training, .momentum = 0.1f) */
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
    int64_t window; // a query sees keys less than so far away; 0: all
    float scale;    // factor of the scores; 0: 1 / sqrt(width)
    float soft_cap; // scores s become soft_cap * tanh(s / soft_cap); 0: as they are
} ht_attention_options;

/* Attention of q (batch, queries, heads, width) to k and v (batch, keys, heads, width), with
 * options that ht_attention lacks. Unlike ht_attention, it stores the scores (batch, heads,
 * queries, keys). Query heads are a multiple of key-value heads. The result is 0 for a query that
 * sees no key. */
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
