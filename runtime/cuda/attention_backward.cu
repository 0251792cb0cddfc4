/* Attention backward. With p the probabilities and dp = dy vᵀ:
 *
 *     ds = p (dp - delta),  delta = the dot product of dy and y
 *     dv = pᵀ dy,  dk = scale * dsᵀ q,  dq = scale * ds k
 *
 * The scores of a tile are computed again from q, k and lse: by the kernel for dk and dv with a row for each key, by the one for dq with a
 * row for each query. Several query heads that share keys are summed in order by the block that owns the keys.
 */
#include "cuda/attention.h"

#include "core/kernels.h"
#include "cuda/cuda.h"

#include <math.h>

/* What the backward kernels read. */
template <typename T> struct BackwardOperands {
    const T *dy, *q, *k, *v, *y;
    const float *lse, *delta; // [b.., s, h]
};

/* ---- delta ---- */

/* A warp for each row of y. */
template <typename T> static __global__ void delta_device(float *delta, const T *dy, const T *y, int64_t rows, int d)
{
    int64_t row = ht_thread() / warpSize;
    if (row >= rows)
        return;
    float sum = 0;
    for (int i = (int)threadIdx.x % warpSize; i < d; i += warpSize)
        sum += (float)dy[row * d + i] * (float)y[row * d + i];
    for (int distance = warpSize / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % (unsigned)warpSize == 0)
        delta[row] = sum;
}

template <typename T> static const float *fill_delta(const AttentionShape *a, const T *dy, const T *y)
{
    const int threads = 256, rows_a_block = threads / 32;
    int64_t rows = (int64_t)a->batch * a->s * a->heads;
    float *delta = (float *)cuda_scratch(rows * (int64_t)sizeof(float));
    if (rows > 0)
        ht_launch(delta_device<T>, (unsigned)((rows + rows_a_block - 1) / rows_a_block), threads, 0, delta, dy, y, rows, a->d);
    return delta;
}

/* ---- scores again ---- */

/* What the rows of scores of E::COLUMNS queries need: lse in units of log(2), and delta. */
struct Statistics {
    float base, delta;
};

/* Those of query i. A query that sees nothing has lse minus infinity; it and what lies beyond the last query get zeros, which with hidden
 * scores or q and dy of 0 make gradients of 0. */
static __device__ __forceinline__ Statistics statistics_of(const AttentionShape &a, const float *lse, const float *delta, int b, int i,
                                                           int h)
{
    int64_t row = ((int64_t)b * a.s + i) * a.heads + h;
    if (i >= a.s || lse[row] == -INFINITY)
        return {0, 0};
    return {lse[row] * log2_e, delta[row]};
}

/* ---- dk and dv ---- */

/* A block that owns E::ROWS keys of a group, from `key` on, and W of the d columns of dk and dv. It goes through `tiles` tiles of queries,
 * from the first that sees a key, for each of the heads that share the group. */
template <typename E, int W> struct KeyBlock {
    int b, g, key, first_column, first_tile, tiles, heads;

    explicit __device__ __forceinline__ KeyBlock(const AttentionShape &a)
    {
        constexpr int slices = E::D / W;
        int task = (int)blockIdx.x / slices, pairs = a.batch * a.groups, pair = task % pairs;
        first_column = (int)blockIdx.x % slices * W;
        b = pair / a.groups;
        g = pair % a.groups;
        key = task / pairs * E::ROWS;
        first_tile = a.causal ? key / E::COLUMNS : 0;
        tiles = max(attention_blocks(a.s, E::COLUMNS) - first_tile, 0);
        heads = a.heads / a.groups;
    }

    __device__ __forceinline__ int head(int it) const { return g * heads + it / tiles; }
    __device__ __forceinline__ int query(int it) const { return (first_tile + it % tiles) * E::COLUMNS; }

    /* Begins to load tile `it` of x, which is q or dy. */
    __device__ __forceinline__ void load(const AttentionShape &a, typename E::T *tile, const typename E::T *x, int it) const
    {
        tile_load<E, E::COLUMNS>(tile, attention_query_rows(a, x, b, query(it), head(it)));
    }
};

template <typename E, int W>
static __global__ void __launch_bounds__(E::threads)
    attention_keys_device(AttentionShape a, BackwardOperands<typename E::T> in, AttentionResult dk, AttentionResult dv)
{
    using T = typename E::T;
    constexpr int D = E::D, tile = E::COLUMNS * D;
    HT_SHARED(T, k_tile);
    T *v_tile = k_tile + E::ROWS * D, *q_tiles = v_tile + E::ROWS * D, *dy_tiles = q_tiles + E::buffers * tile;
    Statistics *statistics = (Statistics *)(dy_tiles + E::buffers * tile);
    void *scratch = statistics + E::buffers * E::COLUMNS;
    const KeyBlock<E, W> at(a);
    const Rows<T> keys = attention_key_rows(a, in.k, at.b, at.key, at.g);
    const int count = at.tiles * at.heads;
    auto load = [&](int it, int buffer) {
        at.load(a, q_tiles + buffer * tile, in.q, it);
        at.load(a, dy_tiles + buffer * tile, in.dy, it);
        for (int i = (int)threadIdx.x; i < E::COLUMNS; i += E::threads)
            statistics[buffer * E::COLUMNS + i] = statistics_of(a, in.lse, in.delta, at.b, at.query(it) + i, at.head(it));
    };
    tile_load<E, E::ROWS>(k_tile, keys);
    tile_load<E, E::ROWS>(v_tile, attention_key_rows(a, in.v, at.b, at.key, at.g));
    tile_begin<E::buffers>(count, load);

    const float scale = a.scale * log2_e;
    typename E::template Sums<W> to_dk, to_dv;
    E::clear(to_dk);
    E::clear(to_dv);
    for (int it = 0; it < count; it++) {
        int buffer = tile_next<E::buffers>(it, count, load);
        const Statistics *of = statistics + buffer * E::COLUMNS;
        typename E::Scores p, ds;
        E::score(p, k_tile, q_tiles + buffer * tile);
        if (attention_is_cut(a, at.query(it), at.key, E::ROWS))
            attention_hide<E, true>(a, at.b, at.key, at.query(it), p);
        for_each_score<E>([&](int r, int c) { p(r, c) = E::exp2(p(r, c) * scale - of[E::column(c)].base); });
        E::add(to_dv, p, dy_tiles + buffer * tile, at.first_column, scratch);
        E::score(ds, v_tile, dy_tiles + buffer * tile);
        for_each_score<E>([&](int r, int c) { ds(r, c) = p(r, c) * (ds(r, c) - of[E::column(c)].delta); });
        E::add(to_dk, ds, q_tiles + buffer * tile, at.first_column, scratch);
    }
    int64_t first = attention_key(a, at.b, at.key, at.g);
    attention_store_rows<E>(dk, first, keys, at.first_column, to_dk, [&](int) { return a.scale; });
    attention_store_rows<E>(dv, first, keys, at.first_column, to_dv, [](int) { return 1.0f; });
}

/* ---- dq ---- */

template <typename E>
static __global__ void __launch_bounds__(E::threads)
    attention_queries_device(AttentionShape a, BackwardOperands<typename E::T> in, AttentionResult dq)
{
    using T = typename E::T;
    constexpr int D = E::D, tile = E::COLUMNS * D;
    HT_SHARED(T, q_tile);
    T *dy_tile = q_tile + E::ROWS * D, *k_tiles = dy_tile + E::ROWS * D, *v_tiles = k_tiles + E::buffers * tile;
    void *scratch = v_tiles + E::buffers * tile;
    const QueryBlock<E> at(a);
    const Rows<T> queries = attention_query_rows(a, in.q, at.b, at.query, at.h);
    auto load = [&](int it, int buffer) {
        at.load(a, k_tiles + buffer * tile, in.k, it);
        at.load(a, v_tiles + buffer * tile, in.v, it);
    };
    tile_load<E, E::ROWS>(q_tile, queries);
    tile_load<E, E::ROWS>(dy_tile, attention_query_rows(a, in.dy, at.b, at.query, at.h));
    tile_begin<E::buffers>(at.count, load);

    Statistics of[E::thread_rows];
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++)
        of[r] = statistics_of(a, in.lse, in.delta, at.b, at.query + E::row(r), at.h);
    const float scale = a.scale * log2_e;
    typename E::template Sums<D> to_dq;
    E::clear(to_dq);
    for (int it = 0; it < at.count; it++) {
        int buffer = tile_next<E::buffers>(it, at.count, load), key = it * E::COLUMNS;
        typename E::Scores p, ds;
        E::score(p, q_tile, k_tiles + buffer * tile);
        if (attention_is_cut(a, at.query, key, E::COLUMNS))
            attention_hide<E, false>(a, at.b, at.query, key, p);
        E::score(ds, dy_tile, v_tiles + buffer * tile);
        for_each_score<E>([&](int r, int c) { ds(r, c) = E::exp2(p(r, c) * scale - of[r].base) * (ds(r, c) - of[r].delta); });
        E::add(to_dq, ds, k_tiles + buffer * tile, 0, scratch);
    }
    int64_t first = attention_query(a, at.b, at.query, at.h);
    attention_store_rows<E>(dq, first, queries, 0, to_dq, [&](int) { return a.scale; });
}

/* ---- calls ---- */

template <typename E> static void launch(const AttentionShape *a, const ht_call *call)
{
    using T = typename E::T;
    constexpr int width = E::D < 128 ? E::D : 128; // of dk and dv: both sums of a wider head would not fit into registers
    const ht_view *in = call->operand, *out = call->result;
    BackwardOperands<T> operands = {(const T *)in[0].data,
                                    (const T *)in[1].data,
                                    (const T *)in[2].data,
                                    (const T *)in[3].data,
                                    (const T *)in[4].data,
                                    (const float *)in[5].data,
                                    nullptr};
    operands.delta = fill_delta(a, operands.dy, operands.y);
    size_t tiles = (size_t)(2 * E::ROWS + 2 * E::buffers * E::COLUMNS) * E::D * sizeof(T) + E::scratch_bytes;
    size_t statistics = (size_t)(E::buffers * E::COLUMNS) * sizeof(Statistics);
    unsigned key_blocks = (unsigned)(a->batch * a->groups * attention_blocks(a->t, E::ROWS) * (E::D / width));
    unsigned query_blocks = (unsigned)(a->batch * a->heads * attention_blocks(a->s, E::ROWS));
    if (key_blocks > 0)
        ht_launch(attention_keys_device<E, width>, key_blocks, E::threads, tiles + statistics, *a, operands, attention_result(&out[1]),
                  attention_result(&out[2]));
    if (query_blocks > 0)
        ht_launch(attention_queries_device<E>, query_blocks, E::threads, tiles, *a, operands, attention_result(&out[0]));
}

void ht_attention_backward_kernel(const ht_call *call)
{
    static void (*const launches[2][3])(const AttentionShape *, const ht_call *) = {
        {launch<PlainEngine<64>>, launch<PlainEngine<128>>, launch<PlainEngine<256>>},
        {launch<TensorEngine<64, 1, 64>>, launch<TensorEngine<128, 1, 64>>, launch<TensorEngine<256, 1, 32>>},
    };
    const ht_view *in = call->operand;
    AttentionShape a = attention_shape(&in[1], &in[2], &in[3], &in[6], call->attr[0].i != 0);
    attention_same_type(&a, &in[0], &in[1]);
    attention_same_type(&a, &in[4], &in[1]);
    launches[in[1].dtype == HT_BF16][attention_width(&a)](&a, call);
}
