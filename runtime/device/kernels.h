/* The kernels of the operators of <hetu/ops.h> of every backend: functions of the same names in runtime/cpu and in runtime/cuda.
 *
 * Each computes what its operator's rule and comment say, on the pieces that the views describe, in f32. Activations and their gradients,
 * and vectors that scale them, may be stored in bf16; statistics (mean, rstd, rnorm, lse, peak, mass, hit), gradients of parameters and all
 * that an optimizer works on are f32. No result depends on the number of threads: sums are added up in a fixed order. Extents of 0 and 1
 * are fine.
 */
#ifndef DEVICE_KERNELS_H
#define DEVICE_KERNELS_H

#include <hetu/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

ht_kernel ht_softmax_kernel, ht_softmax_backward_kernel;
ht_kernel ht_row_max_kernel, ht_mass_kernel, ht_mass_backward_kernel;
ht_kernel ht_layer_norm_kernel, ht_layer_norm_backward_kernel;
ht_kernel ht_rms_norm_kernel, ht_rms_norm_backward_kernel;
ht_kernel ht_l2_norm_kernel, ht_l2_norm_backward_kernel;
ht_kernel ht_embedding_kernel, ht_embedding_backward_kernel;
ht_kernel ht_rope_kernel;
ht_kernel ht_attention_kernel, ht_attention_backward_kernel;
ht_kernel ht_slice_kernel, ht_pad_kernel, ht_concat_kernel, ht_iota_kernel;
ht_kernel ht_cast_kernel; // on CPUs alone: compiled programs cast by generated code
ht_kernel ht_dropout_kernel;
ht_kernel ht_adamw_kernel, ht_sgd_kernel;

#ifdef __cplusplus
}
#endif

#endif
