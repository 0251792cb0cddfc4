/* cudnn_attention.h: attention as graphs for which cuDNN generates one kernel. C++ only.
 *
 * Forward (q: [b, h, s, d]; k, v: [b, g, t, d]; all bf16):
 *
 *     scores = scale * q kT          under `causal`: -FLT_MAX where the key's index exceeds the
 *                                    query's
 *     stats = max + log(sum)         max: maximum of a row; sum: of its e^(scores - max)
 *     y = (e^(scores - max) / sum) v
 *
 * Backward: p = e^(scores - stats), ds = scale * p * (dy vT - sum(dy * y)), dv = pT dy, dk = dsT q,
 * dq = ds k; dk and dv are summed over the heads of a group. dq is not accumulated in memory by
 * several blocks, so cuDNN chooses an engine that gives the same bits in each run. */
#pragma once

#include "cuda/cudnn_graph.h"

/* Elements from one row of all heads of a tensor to the next. A batch's rows are contiguous. */
typedef struct CudnnPitches {
    int64_t q, k, v, y, dy, dq, dk, dv;
} CudnnPitches;

typedef struct CudnnAttention {
    int64_t batch, s, t, heads, groups, d;
    bool causal;
    float scale;
    CudnnPitches pitch;
} CudnnAttention;

/* Numbers of a graph's tensors. stats: [b, h, s], f32, lse of rows. sums: scratch of this shape. */
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
