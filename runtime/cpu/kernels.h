/* The kernels of the operators of <hetu/ops.h> for CPUs.
 *
 * Each computes what its operator's rule and comment say, on the pieces that the views describe, in f32. Activations and their gradients,
 * and vectors that scale them, may be stored in bf16; statistics (mean, rstd, rnorm, lse, peak, mass, hit), gradients of parameters and all
 * that an optimizer works on are f32. All are parallel by OpenMP; no result depends on the number of threads, since sums are cut into
 * chunks of fixed size. Extents of 0 and 1 are fine.
 */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include <hetu/kernel.h>

ht_kernel ht_softmax_kernel, ht_softmax_backward_kernel;
ht_kernel ht_row_max_kernel, ht_mass_kernel, ht_mass_backward_kernel;
ht_kernel ht_layer_norm_kernel, ht_layer_norm_backward_kernel;
ht_kernel ht_rms_norm_kernel, ht_rms_norm_backward_kernel;
ht_kernel ht_l2_norm_kernel, ht_l2_norm_backward_kernel;
ht_kernel ht_embedding_kernel, ht_embedding_backward_kernel;
ht_kernel ht_rope_kernel;
ht_kernel ht_attention_kernel, ht_attention_backward_kernel;
ht_kernel ht_slice_kernel, ht_pad_kernel, ht_concat_kernel, ht_iota_kernel, ht_cast_kernel;
ht_kernel ht_dropout_kernel;
ht_kernel ht_adamw_kernel, ht_sgd_kernel;

#endif
