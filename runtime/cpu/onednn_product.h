/* Matrix products by oneDNN: bf16 operands without conversion to f32, sums in f32.
 *
 *     HETU_PRODUCTS    products of bf16                              products of f32
 *     not set          oneDNN if the processor has AVX512-BF16       OpenBLAS
 *                      or AMX, else OpenBLAS in f32
 *     openblas         OpenBLAS in f32                               OpenBLAS
 *     onednn           as if not set                                 oneDNN
 */
#pragma once

#include <hetu/product.h>

#include <stdbool.h>

/* Computes scale * sum(x * w) + bias by oneDNN: into `sums`, f32 with the strides of y, or into y
 * itself if `sums` is NULL. Returns false if another engine must compute the call, and always in a
 * build without oneDNN; y and `sums` may then have been overwritten. No axis of y is empty. */
bool onednn_product(const ht_product_call *call, float *sums);
