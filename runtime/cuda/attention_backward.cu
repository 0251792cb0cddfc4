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

static const float log2_e = 1.4426950408889634f;

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

/* ---- probabilities again ---- */

/* 2^(scale * score - log2 of the row's sum); `base` is lse times log2(e). A query that sees nothing has lse minus infinity. */
template <typename E> static __device__ __forceinline__ float probability(float score, float scale, float base)
{
    return E::exp2(score * scale - (base == -INFINITY ? 0.0f : base));
}

/* ---- dk and dv ---- */

/* One block for E::ROWS keys of a group and W of the d columns of dk and dv. */
template <typename E, int W>
static __global__ void __launch_bounds__(E::threads)
    attention_keys_device(AttentionShape a, BackwardOperands<typename E::T> in, AttentionResult dk, AttentionResult dv)
{
    using T = typename E::T;
    constexpr int D = E::D, column_tile = E::COLUMNS * D, slices = D / W;
    HT_SHARED(T, k_tile);
    T *v_tile = k_tile + E::ROWS * D, *q_tiles = v_tile + E::ROWS * D, *dy_tiles = q_tiles + E::buffers * column_tile;
    float *lse = (float *)(dy_tiles + E::buffers * column_tile), *delta = lse + E::buffers * E::COLUMNS,
          *scratch = delta + E::buffers * E::COLUMNS;
    int first = (int)blockIdx.x % slices * W, task = (int)blockIdx.x / slices, pairs = a.batch * a.groups, pair = task % pairs;
    int b = pair / a.groups, g = pair % a.groups, key = task / pairs * E::ROWS, shared_by = a.heads / a.groups;
    int64_t query_pitch = (int64_t)a.heads * a.d, key_pitch = (int64_t)a.groups * a.d;
    int begin = a.causal ? key / E::COLUMNS : 0, tiles = attention_blocks(a.s, E::COLUMNS) - begin;
    int count = tiles > 0 ? tiles * shared_by : 0;

    auto load = [&](int it, int buffer) {
        int h = g * shared_by + it / tiles, query = (begin + it % tiles) * E::COLUMNS, valid = a.s - query;
        int64_t at = attention_query(a, b, query, h);
        tile_load<D, E::COLUMNS>(q_tiles + buffer * column_tile, Rows<T>{in.q + at, query_pitch, valid, a.d, a.aligned != 0});
        tile_load<D, E::COLUMNS>(dy_tiles + buffer * column_tile, Rows<T>{in.dy + at, query_pitch, valid, a.d, a.aligned != 0});
        for (int i = (int)threadIdx.x; i < E::COLUMNS; i += E::threads) {
            int64_t row = ((int64_t)b * a.s + query + i) * a.heads + h;
            lse[buffer * E::COLUMNS + i] = i < valid ? in.lse[row] * log2_e : 0.0f;
            delta[buffer * E::COLUMNS + i] = i < valid ? in.delta[row] : 0.0f;
        }
    };
    int64_t at = attention_key(a, b, key, g);
    tile_load<D, E::ROWS>(k_tile, Rows<T>{in.k + at, key_pitch, a.t - key, a.d, a.aligned != 0});
    tile_load<D, E::ROWS>(v_tile, Rows<T>{in.v + at, key_pitch, a.t - key, a.d, a.aligned != 0});
    if (E::buffers == 2 && count > 0)
        load(0, 0);
    copy_commit();

    typename E::template Sums<W> to_dk, to_dv;
    E::clear(to_dk);
    E::clear(to_dv);
    for (int it = 0; it < count; it++) {
        int buffer = tile_next<E::buffers>(it, count, load), query = (begin + it % tiles) * E::COLUMNS;
        const float *base = lse + buffer * E::COLUMNS, *minus = delta + buffer * E::COLUMNS;
        bool cut = attention_is_cut(a, query, E::COLUMNS, key, E::ROWS);
        typename E::Scores p, ds;
        E::score(p, k_tile, q_tiles + buffer * column_tile);
#pragma unroll
        for (int c = 0; c < E::thread_columns; c++)
#pragma unroll
            for (int r = 0; r < E::thread_rows; r++) {
                bool seen = !cut || attention_sees(a, b, query + E::column(c), key + E::row(r));
                p(r, c) = seen ? probability<E>(p(r, c), a.scale * log2_e, base[E::column(c)]) : 0.0f;
            }
        E::add(to_dv, p, dy_tiles + buffer * column_tile, first, scratch);
        E::score(ds, v_tile, dy_tiles + buffer * column_tile);
#pragma unroll
        for (int c = 0; c < E::thread_columns; c++)
#pragma unroll
            for (int r = 0; r < E::thread_rows; r++)
                ds(r, c) = p(r, c) * (ds(r, c) - minus[E::column(c)]);
        E::add(to_dk, ds, q_tiles + buffer * column_tile, first, scratch);
    }
    attention_store_rows<E>(dk, at, key_pitch, a.t - key, first, a.d, to_dk, [&](int) { return a.scale; });
    attention_store_rows<E>(dv, at, key_pitch, a.t - key, first, a.d, to_dv, [](int) { return 1.0f; });
}

/* ---- dq ---- */

/* One block for E::ROWS queries of a head; those that see most keys come first. */
template <typename E>
static __global__ void __launch_bounds__(E::threads)
    attention_queries_device(AttentionShape a, BackwardOperands<typename E::T> in, AttentionResult dq)
{
    using T = typename E::T;
    constexpr int D = E::D, column_tile = E::COLUMNS * D;
    HT_SHARED(T, q_tile);
    T *dy_tile = q_tile + E::ROWS * D, *k_tiles = dy_tile + E::ROWS * D, *v_tiles = k_tiles + E::buffers * column_tile;
    T *scratch = v_tiles + E::buffers * column_tile;
    int pairs = a.batch * a.heads, pair = (int)blockIdx.x % pairs, b = pair / a.heads, h = pair % a.heads, g = h / (a.heads / a.groups);
    int query = ((int)(gridDim.x / (unsigned)pairs) - 1 - (int)blockIdx.x / pairs) * E::ROWS;
    int64_t query_pitch = (int64_t)a.heads * a.d, key_pitch = (int64_t)a.groups * a.d;
    int end = a.causal && query + E::ROWS < a.t ? query + E::ROWS : a.t, count = attention_blocks(end, E::COLUMNS);

    auto load = [&](int it, int buffer) {
        int64_t at = attention_key(a, b, it * E::COLUMNS, g);
        int valid = a.t - it * E::COLUMNS;
        tile_load<D, E::COLUMNS>(k_tiles + buffer * column_tile, Rows<T>{in.k + at, key_pitch, valid, a.d, a.aligned != 0});
        tile_load<D, E::COLUMNS>(v_tiles + buffer * column_tile, Rows<T>{in.v + at, key_pitch, valid, a.d, a.aligned != 0});
    };
    int64_t at = attention_query(a, b, query, h);
    tile_load<D, E::ROWS>(q_tile, Rows<T>{in.q + at, query_pitch, a.s - query, a.d, a.aligned != 0});
    tile_load<D, E::ROWS>(dy_tile, Rows<T>{in.dy + at, query_pitch, a.s - query, a.d, a.aligned != 0});
    if (E::buffers == 2 && count > 0)
        load(0, 0);
    copy_commit();

    float base[E::thread_rows], minus[E::thread_rows];
#pragma unroll
    for (int r = 0; r < E::thread_rows; r++) {
        int64_t row = ((int64_t)b * a.s + query + E::row(r)) * a.heads + h;
        bool valid = query + E::row(r) < a.s;
        base[r] = valid ? in.lse[row] * log2_e : 0.0f;
        minus[r] = valid ? in.delta[row] : 0.0f;
    }
    typename E::template Sums<D> to_dq;
    E::clear(to_dq);
    for (int it = 0; it < count; it++) {
        int buffer = tile_next<E::buffers>(it, count, load), key = it * E::COLUMNS;
        bool cut = attention_is_cut(a, query, E::ROWS, key, E::COLUMNS);
        typename E::Scores p, ds;
        E::score(p, q_tile, k_tiles + buffer * column_tile);
        E::score(ds, dy_tile, v_tiles + buffer * column_tile);
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++)
#pragma unroll
            for (int c = 0; c < E::thread_columns; c++) {
                bool seen = !cut || attention_sees(a, b, query + E::row(r), key + E::column(c));
                float mass = seen ? probability<E>(p(r, c), a.scale * log2_e, base[r]) : 0.0f;
                ds(r, c) = mass * (ds(r, c) - minus[r]);
            }
        E::add(to_dq, ds, k_tiles + buffer * column_tile, 0, scratch);
    }
    attention_store_rows<E>(dq, at, query_pitch, a.s - query, 0, a.d, to_dq, [&](int) { return a.scale; });
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
    size_t statistics = (size_t)(2 * E::buffers * E::COLUMNS) * sizeof(float);
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
