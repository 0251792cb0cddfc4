/* images.h: layers for images (batch, channels, height, width): convolutions, pooling, resampling.
 * A dimension along which windows slide is whole on each device: there is no halo exchange.
 *
 * Names and meanings are PyTorch's unless a comment says otherwise. Optional arguments are named:
 * ht_conv2d(x, w, bias, .stride = {2, 1}), for height and width; .stride = 2 sets both. Included by
 * hetu.h.
 */
#ifndef HETU_IMAGES_H
#define HETU_IMAGES_H

#include <hetu/reductions.h>

#include <math.h>

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

/* Returns how many windows a dimension of `extent` elements has. */
static inline int64_t ht_window_count(int64_t extent, ht_window w)
{
    int64_t reach = (w.size - 1) * w.dilation, all = extent + 2 * w.padding;
    assert(w.size > 0 && w.stride > 0 && w.dilation > 0 && w.padding >= 0 && "windows have an element and go forward");
    assert(all > reach && "a window is no larger than what it goes along");
    return (all - reach - 1) / w.stride + 1;
}

/* Replaces dimension `dim` by two dimensions, (position within a window, window), as PyTorch's
 * unfold; padding has `value`. Size 3, stride 1 and padding 0 turn (8) into (3, 6). */
static inline ht_tensor ht_windows(ht_tensor x, int dim, ht_window w, double value)
{
    enum { MOST = 256 };
    ht_tensor parts[MOST];
    int64_t n = ht_extent(x, dim), count = ht_window_count(n, w);
    assert(w.size <= MOST && "ht_windows takes windows of at most 256 elements");
    int64_t behind = (w.size - 1) * w.dilation + count * w.stride - n - w.padding;
    ht_dims pads = {0};
    pads.rank = 2 * (ht_rank(x) - dim);
    pads.extent[pads.rank - 2] = w.padding;
    pads.extent[pads.rank - 1] = behind > 0 ? behind : 0;
    ht_tensor padded = ht_pad(x, pads, value);
    for (int k = 0; k < w.size; k++)
        parts[k] = ht_strided(padded, dim, k * w.dilation, w.stride, count);
    return w.size == 1 ? ht_unsqueeze(parts[0], dim) : ht_stack((ht_tensors){(int)w.size, parts}, dim);
}

/* ---- convolutions ---- */

/* Second number of an option that was given as one number, .padding = 1: equal to the first. */
enum { HT_AS_FIRST = INT32_MIN };

typedef struct ht_conv_options {
    int stride[2], padding[2], dilation[2];
    int groups;
} ht_conv_options;

static inline int ht_number_of(const int *option, int d) { return option[d] == HT_AS_FIRST ? option[0] : option[d]; }

static inline ht_window ht_window_of(int64_t size, const int *stride, const int *padding, const int *dilation, int d)
{
    return (ht_window){size, ht_number_of(stride, d), ht_number_of(padding, d), ht_number_of(dilation, d)};
}

/* Convolves x (batch, inputs, h, w) with w (outputs, inputs / groups, h, w), without flipping w,
 * and adds bias (outputs), which may be HT_NONE. */
static inline ht_tensor ht_conv2d_with(ht_tensor x, ht_tensor w, ht_tensor bias, ht_conv_options o)
{
    int64_t groups = o.groups, inputs = ht_extent(w, 1), outputs = ht_extent(w, 0);
    assert(ht_rank(x) == 4 && ht_rank(w) == 4 && "ht_conv2d takes images and kernels of four dimensions");
    assert(groups > 0 && outputs % groups == 0 && ht_extent(x, 1) == inputs * groups && "channels are those of the kernel, in groups");
    ht_window down = ht_window_of(ht_extent(w, 2), o.stride, o.padding, o.dilation, 0),
              across = ht_window_of(ht_extent(w, 3), o.stride, o.padding, o.dilation, 1);
    int64_t rows = ht_window_count(ht_extent(x, 2), down), columns = ht_window_count(ht_extent(x, 3), across);
    ht_tensor grouped = ht_reshape(x, ht_shape(ht_extent(x, 0), groups, inputs, ht_extent(x, 2), ht_extent(x, 3)));
    ht_tensor kernel = ht_reshape(w, ht_shape(groups, outputs / groups, inputs, ht_extent(w, 2), ht_extent(w, 3)));
    ht_tensor result = ht_convolution_at(grouped, kernel, rows, columns, (int)down.stride, (int)across.stride, (int)down.padding,
                                         (int)across.padding, (int)down.dilation, (int)across.dilation);
    ht_tensor y = ht_reshape(result, ht_shape(ht_extent(x, 0), outputs, rows, columns));
    return ht_present(bias) ? ht_add(y, ht_reshape(bias, ht_shape(outputs, 1, 1))) : y;
}

/* Convolves x (batch, inputs, n) with w (outputs, inputs / groups, n); only the first number of
 * each option counts. */
static inline ht_tensor ht_conv1d_with(ht_tensor x, ht_tensor w, ht_tensor bias, ht_conv_options o)
{
    ht_conv_options flat = {{1, o.stride[0]}, {0, o.padding[0]}, {1, o.dilation[0]}, o.groups};
    return ht_squeeze_at(ht_conv2d_with(ht_unsqueeze(x, 2), ht_unsqueeze(w, 2), bias, flat), 2);
}

#define HT_CONV_DEFAULTS .stride = {1, HT_AS_FIRST}, .padding = {0, HT_AS_FIRST}, .dilation = {1, HT_AS_FIRST}, .groups = 1
#define ht_conv2d(x, w, bias, ...)                                                                                                         \
    ht_conv2d_with((x), (w), (bias), (ht_conv_options){HT_CONV_DEFAULTS __VA_OPT__(, ) __VA_ARGS__})
#define ht_conv1d(x, w, bias, ...)                                                                                                         \
    ht_conv1d_with((x), (w), (bias), (ht_conv_options){HT_CONV_DEFAULTS __VA_OPT__(, ) __VA_ARGS__})

/* ---- pooling ---- */

typedef struct ht_pool_options {
    int size[2], stride[2], padding[2], dilation[2]; // in elements, height first; stride 0: equal to the size
} ht_pool_options;

static inline ht_window ht_pool_window(ht_pool_options o, int d)
{
    return ht_window_of(ht_number_of(o.size, d), ht_number_of(o.stride, d) ? o.stride : o.size, o.padding, o.dilation, d);
}

static inline ht_tensor ht_max_pool2d_with(ht_tensor x, ht_pool_options o)
{
    for (int d = 1; d >= 0; d--)
        x = ht_first_max(ht_windows(x, 2 + d, ht_pool_window(o, d), -INFINITY), 2 + d);
    return x;
}

/* Averages each window; the averages include the zeros of the padding. */
static inline ht_tensor ht_avg_pool2d_with(ht_tensor x, ht_pool_options o)
{
    for (int d = 1; d >= 0; d--)
        x = ht_mean_over(ht_windows(x, 2 + d, ht_pool_window(o, d), 0), (ht_over){ht_shape(2 + d), false});
    return x;
}

/* Reduce each window of (batch, channels, height, width) to its largest element or its mean. The
 * first option is the window's size; one number stands for both dimensions, {2, 3} for height 2 and
 * width 3. .stride (default: the size), .padding (0 on each side) and .dilation (1) work alike.
 * ht_max_pool2d(x, 2) halves height and width; ht_avg_pool2d(x, 3, .stride = 1, .padding = 1) keeps
 * them. The mean includes the zeros of the padding. */
#define HT_POOL_DEFAULTS                                                                                                                    \
    .size = {0, HT_AS_FIRST}, .stride = {0, HT_AS_FIRST}, .padding = {0, HT_AS_FIRST}, .dilation = {1, HT_AS_FIRST}
#define ht_max_pool2d(x, ...) ht_max_pool2d_with((x), (ht_pool_options){HT_POOL_DEFAULTS, .size = __VA_ARGS__})
#define ht_avg_pool2d(x, ...) ht_avg_pool2d_with((x), (ht_pool_options){HT_POOL_DEFAULTS, .size = __VA_ARGS__})

/* ---- resampling ---- */

/* Reduces dimension `dim` to `size` bins, each the mean of its elements: a product with a (size,
 * extent) matrix of weights. */
static inline ht_tensor ht_adaptive_avg_pool(ht_tensor x, int dim, int64_t size)
{
    return ht_resample_at(x, ht_bins_at(ht_iota(size, HT_I64), ht_iota(ht_extent(x, dim), HT_I64)), dim);
}

static inline ht_tensor ht_adaptive_avg_pool2d(ht_tensor x, int64_t height, int64_t width)
{
    return ht_adaptive_avg_pool(ht_adaptive_avg_pool(x, 2, height), 3, width);
}

/* Resize images, as PyTorch's interpolate, by the nearest element or by bilinear interpolation. */
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

#endif
