/* Describes attention and its backward as graphs of cuDNN. */
#include "cuda/cudnn_attention.h"

#include <float.h>

static const cudnnDataType_t STORED = CUDNN_DATA_BFLOAT16, WIDE = CUDNN_DATA_FLOAT;

/* Return a bf16 tensor of queries [b, heads, s, d], of keys [b, groups, t, d], or of transposed
 * keys [b, groups, d, t]; rows of all heads are `pitch` elements apart. */
static CudnnTensor query_rows(CudnnGraph *graph, int64_t number, const CudnnAttention &a,
                              int64_t pitch) {
    return graph->tensor(number, STORED, {a.batch, a.heads, a.s, a.d},
                         {a.s * pitch, a.d, pitch, 1});
}

static CudnnTensor key_rows(CudnnGraph *graph, int64_t number, const CudnnAttention &a,
                            int64_t pitch) {
    return graph->tensor(number, STORED, {a.batch, a.groups, a.t, a.d},
                         {a.t * pitch, a.d, pitch, 1});
}

static CudnnTensor key_columns(CudnnGraph *graph, int64_t number, const CudnnAttention &a,
                               int64_t pitch) {
    return graph->tensor(number, STORED, {a.batch, a.groups, a.d, a.t},
                         {a.t * pitch, a.d, 1, pitch});
}

static CudnnSizes scores_extent(const CudnnAttention &a) { return {a.batch, a.heads, a.s, a.t}; }

static CudnnSizes row_extent(const CudnnAttention &a) { return {a.batch, a.heads, a.s, 1}; }

/* Returns mode(x...) as a new f32 tensor. */
static CudnnTensor computed(CudnnGraph *graph, cudnnPointwiseMode_t mode,
                            const std::vector<CudnnTensor> &x, const CudnnSizes &extent) {
    CudnnTensor y = graph->between(WIDE, extent);
    graph->pointwise(mode, WIDE, x, y);
    return y;
}

static CudnnTensor index_along(CudnnGraph *graph, const CudnnTensor &scores, int64_t axis) {
    CudnnTensor index = graph->between(CUDNN_DATA_INT32, scores.extent);
    graph->pointwise(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_INT32, {scores}, index, axis);
    return index;
}

/* Returns the scores, with -FLT_MAX where a query does not see a key. */
static CudnnTensor hidden(CudnnGraph *graph, const CudnnAttention &a, const CudnnTensor &scores) {
    if (!a.causal) return scores;
    CudnnTensor query = index_along(graph, scores, 2), key = index_along(graph, scores, 3);
    CudnnTensor sees = graph->between(CUDNN_DATA_BOOLEAN, scores.extent);
    graph->pointwise(CUDNN_POINTWISE_CMP_GE, CUDNN_DATA_BOOLEAN, {query, key}, sees);
    return computed(graph, CUDNN_POINTWISE_BINARY_SELECT, {scores, graph->constant(-FLT_MAX), sees},
                    scores.extent);
}

static CudnnTensor scaled_product(CudnnGraph *graph, const CudnnAttention &a, const CudnnTensor &q,
                                  const CudnnTensor &k) {
    CudnnTensor product = graph->between(WIDE, scores_extent(a));
    graph->matmul(q, k, product);
    return computed(graph, CUDNN_POINTWISE_MUL, {product, graph->constant(a.scale)},
                    scores_extent(a));
}

static CudnnTensor reduced(CudnnGraph *graph, cudnnReduceTensorOp_t op, const CudnnTensor &x,
                           const CudnnSizes &extent) {
    CudnnTensor y = graph->between(WIDE, extent);
    graph->reduce(op, x, y);
    return y;
}

void cudnn_attention_forward(CudnnGraph *graph, const CudnnAttention &a) {
    CudnnTensor q = query_rows(graph, CUDNN_Q, a, a.pitch.q),
                k = key_columns(graph, CUDNN_K, a, a.pitch.k);
    CudnnTensor v = key_rows(graph, CUDNN_V, a, a.pitch.v),
                y = query_rows(graph, CUDNN_Y, a, a.pitch.y);
    CudnnTensor stats =
        graph->tensor(CUDNN_STATS, WIDE, row_extent(a), cudnn_packed(row_extent(a)));

    CudnnTensor scores = hidden(graph, a, scaled_product(graph, a, q, k));
    CudnnTensor peak = reduced(graph, CUDNN_REDUCE_TENSOR_MAX, scores, row_extent(a));
    CudnnTensor below = computed(graph, CUDNN_POINTWISE_SUB, {scores, peak}, scores_extent(a));
    CudnnTensor power = computed(graph, CUDNN_POINTWISE_EXP, {below}, scores_extent(a));
    CudnnTensor sum = reduced(graph, CUDNN_REDUCE_TENSOR_ADD, power, row_extent(a));
    CudnnTensor logarithm = computed(graph, CUDNN_POINTWISE_LOG, {sum}, row_extent(a));
    graph->pointwise(CUDNN_POINTWISE_ADD, WIDE, {peak, logarithm}, stats);
    CudnnTensor p = graph->between(STORED, scores_extent(a));
    graph->pointwise(CUDNN_POINTWISE_DIV, WIDE, {power, sum}, p);
    graph->matmul(p, v, y);
    graph->finish();
}

/* Transposes x [b, h, s, t] to [b, h, t, s] in bf16. */
static CudnnTensor turned(CudnnGraph *graph, const CudnnAttention &a, const CudnnTensor &x) {
    CudnnTensor y = graph->between(STORED, {a.batch, a.heads, a.t, a.s},
                                   {a.heads * a.s * a.t, a.s * a.t, 1, a.t});
    graph->reshape(x, y);
    return y;
}

/* Computes y[b, g, t, d] = x rows for x [b, h, t, s], summed over the heads of a group. Each head's
 * product is rounded to bf16 first; cuDNN supports only this form of the graph. */
static void to_keys(CudnnGraph *graph, const CudnnAttention &a, const CudnnTensor &x,
                    const CudnnTensor &rows, const CudnnTensor &y) {
    if (a.heads == a.groups) {
        graph->matmul(x, rows, y);
        return;
    }
    CudnnTensor each = graph->between(STORED, {a.batch, a.heads, a.t, a.d});
    graph->matmul(x, rows, each);
    graph->reduce(CUDNN_REDUCE_TENSOR_ADD, each, y);
}

/* Computes sums[b, h, s, 1] = sum(dy * y). */
static CudnnTensor row_sums(CudnnGraph *graph, const CudnnAttention &a, const CudnnTensor &dy,
                            const CudnnTensor &y) {
    const CudnnSizes extent = {a.batch, a.heads, a.s, a.d};
    CudnnTensor product =
        graph->between(WIDE, extent, {a.heads * a.s * a.d, a.s * a.d, a.heads * a.d, 1});
    graph->pointwise(CUDNN_POINTWISE_MUL, WIDE, {dy, y}, product);
    CudnnTensor sum = reduced(graph, CUDNN_REDUCE_TENSOR_ADD, product, row_extent(a));
    CudnnTensor sums = graph->tensor(CUDNN_SUMS, WIDE, row_extent(a), cudnn_packed(row_extent(a)));
    graph->pointwise(CUDNN_POINTWISE_MUL, WIDE, {sum, graph->constant(1)}, sums);
    return sums;
}

void cudnn_attention_backward(CudnnGraph *graph, const CudnnAttention &a) {
    CudnnTensor q = query_rows(graph, CUDNN_Q, a, a.pitch.q),
                k = key_columns(graph, CUDNN_K, a, a.pitch.k);
    CudnnTensor v = key_columns(graph, CUDNN_V, a, a.pitch.v),
                y = query_rows(graph, CUDNN_Y, a, a.pitch.y);
    CudnnTensor dy = query_rows(graph, CUDNN_DY, a, a.pitch.dy),
                dq = query_rows(graph, CUDNN_DQ, a, a.pitch.dq);
    CudnnTensor dk = key_rows(graph, CUDNN_DK, a, a.pitch.dk),
                dv = key_rows(graph, CUDNN_DV, a, a.pitch.dv);
    CudnnTensor stats =
        graph->tensor(CUDNN_STATS, WIDE, row_extent(a), cudnn_packed(row_extent(a)));
    CudnnTensor sums = row_sums(graph, a, dy, y);

    CudnnTensor below = computed(graph, CUDNN_POINTWISE_SUB,
                                 {scaled_product(graph, a, q, k), stats}, scores_extent(a));
    CudnnTensor p =
        computed(graph, CUDNN_POINTWISE_EXP, {hidden(graph, a, below)}, scores_extent(a));
    to_keys(graph, a, turned(graph, a, p), dy, dv);

    CudnnTensor dp = graph->between(WIDE, scores_extent(a));
    graph->matmul(dy, v, dp);
    CudnnTensor centred = computed(graph, CUDNN_POINTWISE_SUB, {dp, sums}, scores_extent(a));
    CudnnTensor weighed = computed(graph, CUDNN_POINTWISE_MUL, {centred, p}, scores_extent(a));
    CudnnTensor ds = graph->between(STORED, scores_extent(a));
    graph->pointwise(CUDNN_POINTWISE_MUL, WIDE, {weighed, graph->constant(a.scale)}, ds);
    to_keys(graph, a, turned(graph, a, ds), q, dk);

    CudnnTensor rows =
        graph->between(STORED, {a.batch, a.groups, a.t, a.d}, {a.t * a.pitch.k, a.d, a.pitch.k, 1});
    graph->reshape(k, rows);
    graph->matmul(ds, rows, dq);
    graph->finish();
}
