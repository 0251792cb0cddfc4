/* cudnn_engine.h: calls of attention by cuDNN. C++ only.
 *
 * Served is bf16 with heads of up to 128 numbers, a multiple of 8, at addresses and strides of 16
 * bytes; causal where queries and keys begin at the same place of the sequence; without segments;
 * backward without a gradient of lse, and where the scores of a group's heads take at most
 * attention_kept_bytes. A plan is made at the first call of a shape, which takes seconds and
 * happens in a step that is not recorded. Backward's engines give the same bits each time.
 */
#ifndef CUDA_CUDNN_ENGINE_H
#define CUDA_CUDNN_ENGINE_H

#include "cuda/attention.h"

/* Does the work of a call; false: cuDNN does not serve it, and nothing was done. Where cuDNN should
 * but has no plan, that is said once on standard error. */
bool cudnn_attention(const AttentionShape &a, const ht_call *call);
bool cudnn_attention_gradient(const AttentionShape &a, const ht_call *call);

#endif
