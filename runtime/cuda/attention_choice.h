/* attention_choice.h: whether our kernels or cuDNN's serve a call of attention. C++ only.
 *
 * Environment HETU_ATTENTION: own: our kernels; cudnn: cuDNN's where they serve a call; neither:
 * cuDNN's on GPUs of compute capability 9.0 and up. A program that was built without cuDNN has our
 * kernels alone.
 */
#ifndef CUDA_ATTENTION_CHOICE_H
#define CUDA_ATTENTION_CHOICE_H

#include "cuda/attention.h"

/* Does the work of a call, where it is for cuDNN; false: nothing was done. */
bool attention_elsewhere(const AttentionShape &a, const ht_call *call);
bool attention_backward_elsewhere(const AttentionShape &a, const ht_call *call);

/* Calls of attention by cuDNN (cuda/cudnn_engine.cu).
 *
 * Served is bf16 with heads of up to 128 numbers, a multiple of 8, at addresses and strides of 16
 * bytes; causal where queries and keys begin at the same place of the sequence; without segments;
 * backward without a gradient of lse, and where the scores of a group's heads take at most
 * attention_kept_bytes. A plan is made at the first call of a shape, which takes seconds and
 * happens in a step that is not recorded. Backward's engines give the same bits each time.
 */

/* Does the work of a call; false: cuDNN does not serve it, and nothing was done. Where cuDNN should
 * but has no plan, that is said once on standard error. */
bool cudnn_attention(const AttentionShape &a, const ht_call *call);
bool cudnn_attention_gradient(const AttentionShape &a, const ht_call *call);

#endif
