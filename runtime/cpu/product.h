/* Contractions in f32, behind ht_product. */
#ifndef CPU_PRODUCT_H
#define CPU_PRODUCT_H

#include <hetu/product.h>

/* y = scale * sum of x * w + bias; no axis of y is empty. */
void product_f32(float *y, const float *x, const float *w, const float *bias, int rank,
                 const ht_axis *axes, float scale);

#endif
