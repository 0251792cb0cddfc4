/* attention_choice.h: chooses the runtime's kernels or cuDNN's for an attention call. C++ only.
 *
 *     HETU_ATTENTION=own      the runtime's kernels
 *     HETU_ATTENTION=cudnn    cuDNN's kernels, if they support the call
 *     not set                 cuDNN's on GPUs of compute capability 9.0 and up
 *
 * A program that was built without cuDNN has the runtime's kernels only. */
#pragma once

#include "cuda/attention.h"

/* Run a call with cuDNN if chosen and supported; return false if nothing was done. */
bool attention_elsewhere(const AttentionShape &a, const ht_call *call);
bool attention_backward_elsewhere(const AttentionShape &a, const ht_call *call);

/* cuDNN's attention (cuda/cudnn_engine.cu), which supports calls with
 *
 * - bf16, and heads of up to 128 numbers, a multiple of 8
 * - addresses and strides that are multiples of 16 bytes
 * - under `causal`: queries and keys that begin at the same index of the sequence
 * - no segments
 * - backward: no gradient of lse, and scores of a group's heads of at most attention_kept_bytes
 *
 * A plan is made at the first call of a shape. Making a plan takes seconds, in a step that is not
 * recorded. Backward's engines give the same bits in each run. */

/* Run a call. Return false, and do nothing, if cuDNN does not support the call. If cuDNN should
 * support the call but has no plan, print a message once. */
bool cudnn_attention(const AttentionShape &a, const ht_call *call);
bool cudnn_attention_gradient(const AttentionShape &a, const ht_call *call);
