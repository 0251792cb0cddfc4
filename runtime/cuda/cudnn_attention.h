/* cudnn_attention.h: attention as graphs of cuDNN's operations, of the form in which cuDNN knows it
 * and makes one kernel of it. C++ only.
 *
 * Forward (q: [b, h, s, d]; k, v: [b, g, t, d]; all bf16):
 *
 *     scores = scale * q kT          under `causal`: -FLT_MAX where the key's index exceeds the
 *                                    query's
 *     stats = max + log(sum)         of the row's maximum and of e^(scores - max)
 *     y = (e^(scores - max) / sum) v
 *
 * Backward: p = e^(scores - stats), ds = scale * p * (dy vT - sum(dy * y)), dv = pT dy, dk = dsT q,
 * dq = ds k; the heads of a group are added up for dk and dv. dq is no sum in memory that blocks
 * add to, which makes cuDNN take a way that gives the same bits each time.
 */
#ifndef CUDA_CUDNN_ATTENTION_H
#define CUDA_CUDNN_ATTENTION_H

#include "cuda/cudnn_graph.h"

/* Elements from one row of all heads of a tensor to the next; the rows of a batch follow one
 * another. */
typedef struct CudnnPitches {
    int64_t q, k, v, y, dy, dq, dk, dv;
} CudnnPitches;

typedef struct CudnnAttention {
    int64_t batch, s, t, heads, groups, d;
    bool causal;
    float scale;
    CudnnPitches pitch;
} CudnnAttention;

/* The numbers of the tensors. stats: [b, h, s], f32, the logarithm of a row's sum; sums: as large,
 * scratch memory of backward. */
enum {
    CUDNN_Q = 1,
    CUDNN_K,
    CUDNN_V,
    CUDNN_Y,
    CUDNN_STATS,
    CUDNN_DY,
    CUDNN_DQ,
    CUDNN_DK,
    CUDNN_DV,
    CUDNN_SUMS
};

void cudnn_attention_forward(CudnnGraph *graph, const CudnnAttention &a);
void cudnn_attention_backward(CudnnGraph *graph, const CudnnAttention &a);

#endif
