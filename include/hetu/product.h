/* The contraction behind every product rule: y = scale * sum of x * w, plus a bias, over any axes.
 *
 * Emitted code lists the axes of a call, one a factor, with the stride of each tensor along it. An axis that y lacks is summed over.
 * Strides are in elements and 0 where a tensor lacks the factor.
 *
 *     // y[b, o] = x[b, i] * w[o, i] + bias[o]
 *     static const ht_axis axes[] = {{32, 64, 16, 0, 0}, {64, 1, 0, 16, 1}, {16, 0, 1, 1, 0}};
 *     ht_product(y, x, w, bias, 3, axes, 1);
 */
#ifndef HETU_PRODUCT_H
#define HETU_PRODUCT_H

#include <stdint.h>

typedef struct ht_axis {
    int64_t extent, y, x, w, b;
} ht_axis;

/* Writes every element of y. A bias of NULL is absent; an axis of the bias is an axis of y. Where a summed axis is empty y is the bias or
 * zero; where an axis of y is empty nothing is written. At most HT_MAX_AXES axes. The result does not depend on the number of threads as
 * far as the BLAS's does not. */
enum { HT_MAX_AXES = 32 };
void ht_product(float *y, const float *x, const float *w, const float *bias, int rank, const ht_axis *axes, float scale);

#endif
