/* Attention backward. With p the probabilities and dp = dy vᵀ:
 *
 *     ds = p (dp - delta),  delta = the dot product of dy and y, less dlse
 *     dv = pᵀ dy,  dk = scale * dsᵀ q,  dq = scale * ds k
 *
 * The gradients take five products, including q kᵀ, from which p is recomputed with lse.
 *
 * 1. The keys' kernel has a matrix row for each key, computes dk and dv, and stores dsᵀ.
 * 2. The queries' kernel has a matrix row for each query, and computes dq from the stored dsᵀ.
 *
 * The block that owns keys sums over the query heads that share them, in order. Only a part of ds
 * is stored at a time: some heads or, if these have too many scores, some of their queries. Then
 * the f32 sums of dk and dv stay in memory until the next queries. */
#include "cuda/attention_scores.h"
#include "cuda/attention_tile_sizes.h"
#include "cuda/attention_choice.h"

#include "operators/kernels.h"
#include "cuda/cuda.h"

#include <math.h>

int64_t attention_kept_bytes = INT64_C(512) << 20;

/* The number of queries of a part is a multiple of this number, which all tile sizes divide. */
static constexpr int part_queries = 128;

/* lse and delta of a query; zeros for rows beyond the last, and for a query that sees no key (whose
 * lse is minus infinity). Their gradients are 0, since scores are hidden, or q and dy are 0. */
struct Statistics {
    float lse, delta;
};

/* Operands of the backward kernels. */
template <typename T> struct BackwardOperands {
    const T *dy, *q, *k, *v;
    const Statistics *statistics; // [b.., h, queries]
    int queries;                  // s, rounded up to part_queries
};

/* The kept scores of a part: [head of the part][key][query of the part]; each head is stored as the
 * engine keeps it. */
template <typename T> struct KeptScores {
    T *data;
    int keys, queries; // rounded up to whole tiles

    __device__ __forceinline__ int pitch() const { return queries / kept_side; }
    __device__ __forceinline__ T *at(int head, int key, int query) const {
        return data + (int64_t)head * keys * queries +
               kept_matrix(key / kept_side, query / kept_side, pitch());
    }
};

/* ---- statistics ---- */

/* Returns this lane's part of the dot product of two rows of d elements, V at a time. */
template <int V, typename T>
static __device__ __forceinline__ float lane_dot(const T *x, const T *y, int d) {
    struct alignas(V * sizeof(T)) Vector {
        T element[V];
    };
    float sum = 0;
    for (int i = (int)threadIdx.x % warpSize * V; i < d; i += warpSize * V) {
        Vector a = *(const Vector *)(x + i), b = *(const Vector *)(y + i);
#pragma unroll
        for (int v = 0; v < V; v++) sum += (float)a.element[v] * (float)b.element[v];
    }
    return sum;
}

/* Computes lse and delta with one warp for each query of a head, and each row beyond the last. */
template <typename T>
static __global__ void statistics_device(AttentionShape a, Statistics *statistics, const T *dy,
                                         const T *y, const float *lse, const float *dlse,
                                         int queries) {
    int64_t row = ht_thread() / warpSize, head = row / queries;
    int i = (int)(row % queries), h = (int)(head % a.heads), b = (int)(head / a.heads);
    if (b >= a.batch) return;
    Statistics of = {0, 0};
    if (i < a.s) {
        int64_t at = attention_query(a, b, i, h);
        float top = lse[at / a.d], sum = a.aligned ? lane_dot<4>(dy + at, y + at, a.d)
                                                   : lane_dot<1>(dy + at, y + at, a.d);
        for (int distance = warpSize / 2; distance > 0; distance /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, distance);
        if (top != -INFINITY) of = {top, dlse ? sum - dlse[at / a.d] : sum};
    }
    if (threadIdx.x % (unsigned)warpSize == 0) statistics[row] = of;
}

/* ---- dk and dv ---- */

/* Returns e^(score - lse). Score and lse must be rounded alike, and subtracted before the product
 * with log2(e), since large numbers lose digits. */
template <typename E> static __device__ __forceinline__ float probability(float score, float lse) {
    return E::exp2(__fsub_rn(score, lse) * log2_e);
}

/* A tile of queries from `query` on; `head` is the query head's index within its group. */
struct QueryTile {
    int head, query;
};

/* A block that owns E::ROWS keys of a group, from `key` on, and W of the d columns of dk and dv.
 * For each head of the group, it loops over the part's tiles of queries, from the first query on
 * that sees one of the keys: `count` tiles in all. */
template <typename E, int W> struct KeyBlock {
    int b, g, pair, key, first_column, heads, first, tiles, count; // tiles: tiles of one head

    KeyBlock() = default;
    __device__ __forceinline__ KeyBlock(const AttentionShape &a, const AttentionPart &part) {
        constexpr int slices = E::D / W;
        int task = (int)blockIdx.x / slices;
        first_column = (int)blockIdx.x % slices * W;
        pair = task % part.pairs;
        b = (part.pair + pair) / a.groups;
        g = (part.pair + pair) % a.groups;
        key = task / part.pairs * E::ROWS;
        heads = a.heads / a.groups;
        first = max(first_query(a, key), part.query);
        tiles = max(attention_blocks(part.end - first, E::COLUMNS), 0);
        count = tiles * heads;
    }

    /* Returns the first query whose scores with a key are computed. */
    static __device__ __forceinline__ int first_query(const AttentionShape &a, int of_key) {
        return attention_first(a, of_key / E::ROWS * E::ROWS) / E::COLUMNS * E::COLUMNS;
    }

    /* Returns tile `it` of `count`. */
    __device__ __forceinline__ QueryTile tile(int it) const {
        return {it / tiles, first + it % tiles * E::COLUMNS};
    }

    /* Begins to load a tile of x, which is q or dy. */
    __device__ __forceinline__ void load(const AttentionShape &a, typename E::T *tile,
                                         const typename E::T *x, int pitch, QueryTile at) const {
        tile_load<E, E::COLUMNS>(
            tile, attention_query_rows(a, x, pitch, b, at.query, g * heads + at.head));
    }

    /* Begins to load the statistics of a tile's queries. */
    __device__ __forceinline__ void load(const AttentionShape &a, Statistics *to,
                                         const BackwardOperands<typename E::T> &in,
                                         QueryTile at) const {
        constexpr int piece = 16 / (int)sizeof(Statistics);
        static_assert(E::COLUMNS / piece <= E::threads, "a piece a thread");
        const Statistics *from =
            in.statistics + ((int64_t)b * a.heads + g * heads + at.head) * in.queries + at.query;
        if ((int)threadIdx.x < E::COLUMNS / piece)
            copy_begin(to + threadIdx.x * piece, from + threadIdx.x * piece, true);
    }

    /* Returns the address at which the scores of a tile are stored. */
    __device__ __forceinline__ typename E::T *kept(const KeptScores<typename E::T> &in,
                                                   const AttentionPart &part, QueryTile at) const {
        return in.at(pair * heads + at.head, key, at.query - part.query);
    }
};

/* This thread's memory for sums between two parts: `count` floats, E::threads floats apart. */
template <typename E, typename Sums> struct Carry {
    static constexpr int count = E::thread_rows * Sums::columns;
    float *place;

    __device__ __forceinline__ Carry(float *carry, int which)
        : place(carry + ((int64_t)blockIdx.x * 2 + which) * count * E::threads + threadIdx.x) {}

    __device__ __forceinline__ void take(Sums &sums) const {
#pragma unroll
        for (int i = 0; i < count; i++)
            sums(i / Sums::columns, i % Sums::columns) = place[(int64_t)i * E::threads];
    }

    __device__ __forceinline__ void leave(const Sums &sums) const {
#pragma unroll
        for (int i = 0; i < count; i++)
            place[(int64_t)i * E::threads] = sums(i / Sums::columns, i % Sums::columns);
    }
};

template <typename E, int W>
static __global__ void __launch_bounds__(E::threads, 1)
    attention_keys_device(AttentionShape a, AttentionPart part, BackwardOperands<typename E::T> in,
                          KeptScores<typename E::T> kept, float *carry, AttentionResult dk,
                          AttentionResult dv) {
    using T = typename E::T;
    using Sums = typename E::template Sums<W>;
    constexpr int D = E::D, tile = E::COLUMNS * D;
    HT_SHARED(T, k_tile);
    T *v_tile = k_tile + E::ROWS * D, *q_tiles = v_tile + E::ROWS * D,
      *dy_tiles = q_tiles + E::buffers * tile;
    Statistics *statistics = (Statistics *)(dy_tiles + E::buffers * tile);
    T *scratch = (T *)(statistics + E::buffers * E::COLUMNS), *passed_p = scratch,
      *passed_ds = passed_p + E::ROWS * E::COLUMNS;
    constexpr int passed_pitch = E::COLUMNS / kept_side;
    const KeyBlock<E, W> &at =
        attention_known<KeyBlock<E, W>>([&] { return KeyBlock<E, W>(a, part); });
    const Rows<T> keys = attention_key_rows(a, in.k, a.k_pitch, at.b, at.key, at.g);
    auto load = [&](int it, int buffer) {
        const QueryTile ahead = at.tile(it);
        at.load(a, q_tiles + buffer * tile, in.q, a.q_pitch, ahead);
        at.load(a, dy_tiles + buffer * tile, in.dy, a.heads * a.d, ahead);
        at.load(a, statistics + buffer * E::COLUMNS, in, ahead);
    };
    tile_load<E, E::ROWS>(k_tile, keys);
    tile_load<E, E::ROWS>(v_tile, attention_key_rows(a, in.v, a.v_pitch, at.b, at.key, at.g));
    tile_begin<E::buffers>(at.count, load);

    Sums to_dk, to_dv;
    E::clear(to_dk);
    E::clear(to_dv);
    if (part.query > 0) {
        Carry<E, Sums>(carry, 0).take(to_dk);
        Carry<E, Sums>(carry, 1).take(to_dv);
    }
    for (int it = 0; it < at.count; it++) {
        const QueryTile here = at.tile(it);
        int buffer = tile_next<E::buffers>(it, at.count, load);
        const Statistics *of = statistics + buffer * E::COLUMNS;
        typename E::Scores p, ds;
        E::score(p, k_tile, q_tiles + buffer * tile);
        attention_hide<E, true>(a, at.b, at.key, here.query, p);
        for_each_score<E>([&](int r, int c) {
            p(r, c) = probability<E>(p(r, c) * a.scale, of[E::column(c)].lse);
        });
        if constexpr (E::passes) E::keep(passed_p, passed_pitch, p);
        else E::add(to_dv, p, dy_tiles + buffer * tile, at.first_column, scratch);
        E::score(ds, v_tile, dy_tiles + buffer * tile);
        for_each_score<E>(
            [&](int r, int c) { ds(r, c) = p(r, c) * (ds(r, c) - of[E::column(c)].delta); });
        if (at.first_column == 0) E::keep(at.kept(kept, part, here), kept.pitch(), ds);
        if constexpr (E::passes) {
            E::keep(passed_ds, passed_pitch, ds);
            __syncthreads();
            E::add_passed(to_dv, passed_p, dy_tiles + buffer * tile, at.first_column);
            E::add_passed(to_dk, passed_ds, q_tiles + buffer * tile, at.first_column);
        } else {
            E::add(to_dk, ds, q_tiles + buffer * tile, at.first_column, scratch);
        }
    }
    if (part.end < a.s) {
        Carry<E, Sums>(carry, 0).leave(to_dk);
        Carry<E, Sums>(carry, 1).leave(to_dv);
        return;
    }
    attention_store_rows<E>(dk, attention_row(a.t, dk.pitch, a.d, at.b, at.key, at.g), keys,
                            at.first_column, to_dk, [&](int) { return a.scale; });
    attention_store_rows<E>(dv, attention_row(a.t, dv.pitch, a.d, at.b, at.key, at.g), keys,
                            at.first_column, to_dv, [](int) { return 1.0f; });
}

/* ---- dq ---- */

/* Computes dq. E: the engine of this kernel; K: the engine that stored the scores. */
template <typename E, typename K>
static __global__ void __launch_bounds__(E::threads, 1)
    attention_queries_device(AttentionShape a, AttentionPart part, const typename E::T *k,
                             KeptScores<typename E::T> kept, AttentionResult dq) {
    using T = typename E::T;
    constexpr int D = E::D, tile = E::COLUMNS * D, scores = E::COLUMNS * E::ROWS;
    HT_SHARED(T, k_tiles);
    T *kept_tiles = k_tiles + E::buffers * tile, *scratch = kept_tiles + E::buffers * scores;
    const QueryBlock<E> &at =
        attention_known<QueryBlock<E>>([&] { return QueryBlock<E>(a, part); });
    const int head = at.b * a.heads + at.h - part.pair * (a.heads / a.groups);
    auto load = [&](int it, int buffer) {
        int first = it * E::COLUMNS;
        at.load(a, k_tiles + buffer * tile, k, a.k_pitch, it);
        auto there = [&](int key, int query) {
            return key < a.t && query < a.s && query >= KeyBlock<K, K::D>::first_query(a, key);
        };
        bool whole = at.query + E::ROWS <= a.s && first + E::COLUMNS <= a.t &&
                     there(first + E::COLUMNS - 1, at.query);
        kept_load<E>(kept_tiles + buffer * scores, kept.at(head, first, at.query - part.query),
                     kept.pitch(), whole, [&](int i, int j) {
                         return there(first + i * kept_side, at.query + j * kept_side);
                     });
    };
    tile_begin<E::buffers>(at.count, load);

    typename E::template Sums<D> to_dq;
    E::clear(to_dq);
    for (int it = 0; it < at.count; it++) {
        int buffer = tile_next<E::buffers>(it, at.count, load);
        E::add_kept(to_dq, kept_tiles + buffer * scores, k_tiles + buffer * tile, scratch);
    }
    const Rows<T> queries = attention_query_rows(a, k, a.q_pitch, at.b, at.query, at.h);
    attention_store_rows<E>(dq, attention_row(a.s, dq.pitch, a.d, at.b, at.query, at.h), queries, 0,
                            to_dq, [&](int) { return a.scale; });
}

/* ---- calls ---- */

static int rounded_up(int n, int unit) { return attention_blocks(n, unit) * unit; }

/* Returns the first part of a call; the other parts follow from it. A head has `row_bytes` of
 * scores for each query, and a pair has `blocks` blocks of keys. The part has whole heads if the
 * heads that occupy a GPU fit in attention_kept_bytes, else some queries of these heads. */
static AttentionPart first_part(const AttentionShape *a, int64_t row_bytes, int blocks) {
    const int64_t busy_blocks = 1024, all = (int64_t)a->batch * a->groups,
                  shared = a->heads / a->groups;
    int64_t rows = attention_kept_bytes / (row_bytes > 0 ? row_bytes : 1),
            of_pair = shared * rounded_up(a->s, part_queries);
    int64_t fitting = of_pair > 0 ? rows / of_pair : all,
            busy = (busy_blocks + blocks) / (blocks > 0 ? blocks : 1);
    int64_t pairs = fitting > busy ? fitting : busy;
    pairs = pairs < all ? pairs : all;
    pairs = (all + (all + pairs - 1) / pairs - 1) / ((all + pairs - 1) / pairs);
    int64_t queries =
        fitting >= pairs ? a->s : rows / (pairs * shared) / part_queries * part_queries;
    queries = queries < part_queries ? part_queries : queries;
    return {0, (int)pairs, 0, queries < a->s ? (int)queries : a->s};
}

/* The scratch memory of a call, from one cuda_scratch. */
template <typename T> struct BackwardMemory {
    Statistics *statistics;
    T *kept;
    float *carry;
};

template <typename T>
static BackwardMemory<T> backward_memory(int64_t statistics, int64_t kept, int64_t carry) {
    const int64_t unit = 256;
    auto room = [&](int64_t bytes) { return (bytes + unit - 1) / unit * unit; };
    int64_t first = room(statistics * (int64_t)sizeof(Statistics)),
            second = room(kept * (int64_t)sizeof(T));
    char *memory = (char *)cuda_scratch(first + second + room(carry * (int64_t)sizeof(float)));
    return {(Statistics *)memory, (T *)(memory + first), (float *)(memory + first + second)};
}

template <typename T>
static void fill_statistics(const AttentionShape *a, const ht_view *in, Statistics *statistics,
                            int queries) {
    const int threads = 256, rows_a_block = threads / 32;
    int64_t rows = (int64_t)a->batch * a->heads * queries;
    if (rows > 0)
        ht_launch(statistics_device<T>, (unsigned)((rows + rows_a_block - 1) / rows_a_block),
                  threads, 0, *a, statistics, (const T *)in[0].data, (const T *)in[4].data,
                  (const float *)in[5].data, (const float *)in[8].data, queries);
}

/* Columns of dk and dv that one thread block (KeyBlock) sums; more do not fit in registers. */
template <typename K> static constexpr int keys_width = K::D < 128 ? K::D : 128;

/* Returns the bytes of dynamic shared memory of a block that owns keys. */
template <typename K> static constexpr size_t keys_shared() {
    return (size_t)(2 * K::ROWS + 2 * K::buffers * K::COLUMNS) * K::D * sizeof(typename K::T) +
           (size_t)(K::buffers * K::COLUMNS) * sizeof(Statistics) + K::scratch_bytes;
}

/* Returns the bytes of dynamic shared memory of a block that owns queries. */
template <typename Q> static constexpr size_t queries_shared() {
    return (size_t)(Q::buffers * Q::COLUMNS) * (Q::D + Q::ROWS) * sizeof(typename Q::T) +
           Q::scratch_bytes;
}

/* Return the bytes of all shared memory of a block that owns keys, or queries. */
template <typename K> static constexpr size_t keys_whole() {
    return attention_shared<KeyBlock<K, keys_width<K>>>(keys_shared<K>());
}
template <typename Q> static constexpr size_t queries_whole() {
    return attention_shared<QueryBlock<Q>>(queries_shared<Q>());
}

/* Runs backward. K: the engine with a row for each key; Q: with a row for each query. */
template <typename K, typename Q> static void launch(const AttentionShape *a, const ht_call *call) {
    using T = typename K::T;
    static_assert(K::ROWS % Q::COLUMNS == 0 && part_queries % Q::ROWS == 0 &&
                      part_queries % K::COLUMNS == 0,
                  "whole tiles are kept");
    constexpr int width = keys_width<K>;
    const ht_view *in = call->operand, *out = call->result;
    const int all = a->batch * a->groups, keys = rounded_up(a->t, K::ROWS),
              queries = rounded_up(a->s, part_queries);
    if (all == 0) return;
    const int shared = a->heads / a->groups, blocks = keys / K::ROWS * (K::D / width);
    AttentionPart part = first_part(a, (int64_t)keys * (int64_t)sizeof(T), blocks);
    const int pairs = part.pairs, step = part.end;
    const int64_t kept_count = (int64_t)pairs * shared * keys * rounded_up(step, part_queries);
    const int64_t carry_count = step < a->s ? (int64_t)pairs * blocks * K::ROWS * width * 2 : 0;
    const BackwardMemory<T> memory =
        backward_memory<T>((int64_t)a->batch * a->heads * queries, kept_count, carry_count);
    const BackwardOperands<T> operands = {(const T *)in[0].data, (const T *)in[1].data,
                                          (const T *)in[2].data, (const T *)in[3].data,
                                          memory.statistics,     queries};
    fill_statistics<T>(a, in, memory.statistics, queries);
    for (part.pair = 0; part.pair < all; part.pair += pairs) {
        part.pairs = min(pairs, all - part.pair);
        for (part.query = 0; part.query == 0 || part.query < a->s; part.query = part.end) {
            part.end = min(part.query + step, a->s);
            const KeptScores<T> kept = {memory.kept, keys, rounded_up(step, part_queries)};
            unsigned key_blocks = (unsigned)(part.pairs * blocks);
            unsigned query_blocks =
                (unsigned)(part.pairs * shared * attention_blocks(part.end - part.query, Q::ROWS));
            if (key_blocks > 0)
                ht_launch(attention_keys_device<K, width>, key_blocks, K::threads, keys_shared<K>(),
                          *a, part, operands, kept, memory.carry, attention_result(&out[1]),
                          attention_result(&out[2]));
            if (query_blocks > 0)
                ht_launch(attention_queries_device<Q, K>, query_blocks, Q::threads,
                          queries_shared<Q>(), *a, part, operands.k, kept,
                          attention_result(&out[0]));
            if (part.end >= a->s) break;
        }
    }
}

/* Runs with K, or with `Small` if K needs more shared memory than a block can have. */
template <typename K, typename Small, typename Q>
static void launch_fitting(const AttentionShape *a, const ht_call *call) {
    static_assert(keys_whole<Small>() <= attention_least_shared &&
                      queries_whole<Q>() <= attention_least_shared,
                  "it runs on every GPU");
    if ((int64_t)keys_whole<K>() <= cuda_shared_bytes()) launch<K, Q>(a, call);
    else launch<Small, Q>(a, call);
}

template <typename K, typename Q>
static void launch_fitting(const AttentionShape *a, const ht_call *call) {
    static_assert(keys_whole<K>() <= attention_least_shared &&
                      queries_whole<Q>() <= attention_least_shared,
                  "it runs on every GPU");
    launch<K, Q>(a, call);
}

void ht_attention_backward_kernel(const ht_call *call) {
    static void (*const launches[2][3])(const AttentionShape *, const ht_call *) = {
        {BACKWARD_TILES_F32(launch_fitting)},
        {BACKWARD_TILES_BF16(launch_fitting)},
    };
    const ht_view *in = call->operand;
    AttentionShape a = attention_shape(&in[1], &in[6], call->attr[0].i != 0);
    attention_same_type(&a, &in[0], &in[1]);
    attention_same_type(&a, &in[4], &in[1]);
    if (attention_backward_elsewhere(a, call)) return;
    launches[in[1].dtype == HT_BF16][attention_width(&a)](&a, call);
}
