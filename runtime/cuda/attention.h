/* Attention on a GPU: what the forward and the backward kernels share. C++ only.
 *
 * A block of threads owns some rows of a matrix of scores (queries, or keys for the gradients of keys and values) and goes through the
 * columns a tile at a time; no matrix of scores is kept (Dao: FlashAttention-2, 2023). Nothing is added with atomics, so results are the
 * same bits each time: the gradients of queries and those of keys are two kernels that each compute the scores again.
 *
 * The kernels are written once, for an engine (attention_engine.h): tensor cores for bf16, plain arithmetic for f32.
 *
 * q, y: [b.., s, h, d]; k, v: [b.., t, g, d]; lse: [b.., s, h]; query head h reads key-value head h / (heads / groups).
 */
#ifndef CUDA_ATTENTION_H
#define CUDA_ATTENTION_H

#include "cuda/attention_engine.h"

#include <hetu/kernel.h>

/* Sizes of a call, as the kernels get them. */
typedef struct AttentionShape {
    int batch, s, t, heads, groups, d;
    int causal, aligned;  // aligned: rows can be copied 16 bytes at a time
    float scale;          // 1 / sqrt(d)
    const void *segments; // [b.., s], NULL: none
    int wide_segments;    // of 64 bits
} AttentionShape;

/* The shape of a call with these operands. Ends the program when they are none that the kernels know. */
AttentionShape attention_shape(const ht_view *q, const ht_view *k, const ht_view *v, const ht_view *segments, int causal);

/* Ends the program unless a view has the type of `like`. Notes in the shape when its rows cannot be copied 16 bytes at a time. */
void attention_same_type(AttentionShape *a, const ht_view *view, const ht_view *like);

/* Where a result's elements go. */
typedef struct AttentionResult {
    void *data;
    int bf16;
} AttentionResult;

AttentionResult attention_result(const ht_view *view);

/* Which of the engines for 64, 128 and 256 numbers a head fits a call: 0 to 2. */
static inline int attention_width(const AttentionShape *a) { return a->d <= 64 ? 0 : a->d <= 128 ? 1 : 2; }

static __host__ __device__ inline int attention_blocks(int rows, int tile) { return (rows + tile - 1) / tile; }

/* Row i of head h in q and y, or of a group in k and v. */
static __device__ inline int64_t attention_query(const AttentionShape &a, int b, int i, int h)
{
    return (((int64_t)b * a.s + i) * a.heads + h) * a.d;
}

static __device__ inline int64_t attention_key(const AttentionShape &a, int b, int j, int g)
{
    return (((int64_t)b * a.t + j) * a.groups + g) * a.d;
}

static __device__ inline int64_t attention_segment(const AttentionShape &a, int b, int i)
{
    int64_t at = (int64_t)b * a.s + i;
    return a.wide_segments ? ((const int64_t *)a.segments)[at] : ((const int *)a.segments)[at];
}

/* Whether query i sees key j; both may be beyond the end. */
static __device__ inline bool attention_sees(const AttentionShape &a, int b, int i, int j)
{
    return i < a.s && j < a.t && (!a.causal || j <= i) && (!a.segments || attention_segment(a, b, i) == attention_segment(a, b, j));
}

/* Whether some query of a tile may not see some key of it. */
static __device__ inline bool attention_is_cut(const AttentionShape &a, int query, int queries, int key, int keys)
{
    return a.segments || query + queries > a.s || key + keys > a.t || (a.causal && key + keys - 1 > query);
}

static __device__ inline void attention_store(const AttentionResult &to, int64_t at, float value)
{
    if (to.bf16)
        ((__nv_bfloat16 *)to.data)[at] = __float2bfloat16(value);
    else
        ((float *)to.data)[at] = value;
}

/* Stores this thread's part of the rows that a block owns, times `factor(row of the thread)`; `at` is the element of the block's row 0,
 * `first` the column of the first sum. */
template <typename E, typename Sums, typename Factor>
static __device__ __forceinline__ void attention_store_rows(const AttentionResult &to, int64_t at, int64_t pitch, int rows, int first,
                                                            int d, const Sums &sums, Factor factor)
{
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++) {
        if (E::row(r) >= rows)
            continue;
        float by = factor(r);
#pragma unroll
        for (int c = 0; c < Sums::columns; c++)
            if (first + E::column(c) < d)
                attention_store(to, at + E::row(r) * pitch + first + E::column(c), sums(r, c) * by);
    }
}

#endif
