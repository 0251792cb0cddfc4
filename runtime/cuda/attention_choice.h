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

#endif
