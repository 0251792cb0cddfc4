/* The contraction of every product rule: y = activation(scale * sum of x * w, plus a bias),
 * over any axes.
 *
 * Emitted code lists the axes of a call, one for each factor, with each tensor's stride along that
 * axis. An axis that y lacks is summed over. Strides are in elements; 0: the tensor lacks the axis.
 *
 *     // y[b, o] = x[b, i] * w[o, i] + bias[o]
 *     static const ht_axis axes[] = {{32, 64, 16, 0, 0}, {64, 1, 0, 16, 1}, {16, 0, 1, 1, 0}};
 *     const ht_product_call call = {.y = y, .y_dtype = HT_F32, .x = x, .w = w, .dtype = HT_F32,
 *         .bias = bias, .bias_dtype = HT_F32, .scale = 1, .rank = 3, .axes = axes};
 *     ht_product(&call);
 */
#ifndef HETU_PRODUCT_H
#define HETU_PRODUCT_H

#include <hetu/kernel.h>

#include <stdint.h>

/* An axis: its extent, and the strides of y, x, w and the bias (b) along it. */
typedef struct ht_axis {
    int64_t extent, y, x, w, b;
} ht_axis;

/* Activation applied to sum + bias, in f32, before rounding to y_dtype: ht_relu or ht_gelu of
 * <hetu/ops.h>. */
typedef enum ht_epilogue { HT_NO_EPILOGUE, HT_RELU, HT_GELU } ht_epilogue;

/* Arguments of a product. Types are HT_F32 or HT_BF16; sums are in f32 for all types. Zero fields
 * mean: no bias, no epilogue. */
typedef struct ht_product_call {
    void *y;
    ht_dtype y_dtype;
    const void *x, *w;
    ht_dtype dtype;   // type of x and of w
    const void *bias; // NULL: absent; an axis of the bias is an axis of y
    ht_dtype bias_dtype;
    float *sums;   // output: sums of x (of w if `sums_of_w`) over its axes that y lacks; NULL: none. ht_axis.b has its strides, and `bias` is NULL
    int sums_of_w; // whether `sums` are sums of w, not of x
    float scale;
    ht_epilogue epilogue;
    void *aux; // output of the values before the activation, with y's shape, strides and type; NULL: none
    int rank;
    const ht_axis *axes;
} ht_product_call;

enum { HT_MAX_AXES = 32 };
/* Computes every element of y, over at most HT_MAX_AXES axes: where a summed axis is empty the sum
 * is 0; where an axis of y is empty nothing is written. The result depends on the number of threads
 * only where the BLAS library does. */
void ht_product(const ht_product_call *call);

#endif
