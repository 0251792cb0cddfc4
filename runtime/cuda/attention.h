/* Attention on a GPU: what the forward and the backward kernels share. C++ only.
 *
 * A block of threads owns some rows of a matrix of scores (queries, or keys for the gradients of
 * keys and values) and goes through the columns a tile at a time; no whole matrix of scores is kept
 * (Dao: FlashAttention-2, 2023). Nothing is added with atomics, so results are the same bits each
 * time.
 *
 * The kernels are written once, for an engine (attention_engine.h): tensor cores for bf16, plain
 * arithmetic for f32.
 *
 * q, y: [b.., s, h, d]; k, v: [b.., t, g, d]; lse: [b.., s, h]; query head h reads key-value head h
 * / (heads / groups).
 */
#ifndef CUDA_ATTENTION_H
#define CUDA_ATTENTION_H

#include "cuda/attention_engine.h"

#include <hetu/kernel.h>

#include <math.h>

static constexpr float log2_e = 1.4426950408889634f; // exponentials are powers of 2

/* Where the rows of a piece lie in the whole tensor: the first `fold` from `offset` on, the others
 * `gap` further. */
typedef struct AttentionPlaces {
    int offset, fold, gap;
} AttentionPlaces;

/* The segments of a piece's rows: [b.., rows]; `at` NULL: none. */
typedef struct AttentionSegments {
    const void *at;
    int rows, wide; // wide: of 64 bits
} AttentionSegments;

/* Sizes of a call, as the kernels get them. */
typedef struct AttentionShape {
    int batch, s, t, heads, groups, d;
    int causal, aligned;           // aligned: rows can be copied 16 bytes at a time
    float scale;                   // 1 / sqrt(d)
    int q_pitch, k_pitch, v_pitch; // elements from one row of all heads to the next
    AttentionPlaces queries, keys;
    AttentionSegments segments, key_segments; // of queries and keys
} AttentionShape;

/* The shape of a call whose operands are `in` (q, k, v) and `segments` (those of the queries and
 * those of the keys). Ends the program when they are none that the kernels know. */
AttentionShape attention_shape(const ht_view *in, const ht_view *segments, int causal);

/* Ends the program unless a view has the type of `like`. Notes in the shape when its rows cannot be
 * copied 16 bytes at a time. */
void attention_same_type(AttentionShape *a, const ht_view *view, const ht_view *like);

/* How many bytes of scores the backward of a call keeps at a time, where that leaves a GPU enough
 * work; 512 MiB unless a test says else. */
extern int64_t attention_kept_bytes;

/* Where a result's elements go. */
typedef struct AttentionResult {
    void *data;
    int bf16, pairs; // pairs: an element in an even column and the next one can be stored at once
    int pitch;       // elements from one row of all heads to the next
} AttentionResult;

AttentionResult attention_result(const ht_view *view);

/* Which of the engines for 64, 128 and 256 numbers a head fits a call: 0 to 2. */
static inline int attention_width(const AttentionShape *a) {
    return a->d <= 64 ? 0 : a->d <= 128 ? 1 : 2;
}

/* Bytes of shared memory that a block may have on every GPU: there is an engine that needs no more
 * for every width. */
static constexpr int64_t attention_least_shared = 99 * 1024;

static __host__ __device__ inline int attention_blocks(int rows, int tile) {
    return (rows + tile - 1) / tile;
}

static __device__ __forceinline__ int attention_place(const AttentionPlaces &of, int i) {
    return of.offset + i + (i >= of.fold ? of.gap : 0);
}

/* How many of `rows` rows lie in front of a place of the whole tensor. */
static __device__ __forceinline__ int attention_before(const AttentionPlaces &of, int rows,
                                                       int place) {
    return min(max(place - of.offset, 0), of.fold) +
           min(max(place - of.offset - of.fold - of.gap, 0), rows - of.fold);
}

/* Keys that query i sees: the first of the piece's; and the first query of the piece's that sees
 * key j. */
static __device__ __forceinline__ int attention_visible(const AttentionShape &a, int i) {
    return a.causal ? attention_before(a.keys, a.t, attention_place(a.queries, i) + 1) : a.t;
}

static __device__ __forceinline__ int attention_first(const AttentionShape &a, int j) {
    return a.causal ? attention_before(a.queries, a.s, attention_place(a.keys, j)) : 0;
}

/* The element at which row i of a head begins, where all rows of a batch are so many and lie
 * `pitch` apart. */
static __device__ inline int64_t attention_row(int rows, int64_t pitch, int d, int b, int i,
                                               int head) {
    return ((int64_t)b * rows + i) * pitch + (int64_t)head * d;
}

/* The same of query i of head h in y and dy, which lie in a row. */
static __device__ inline int64_t attention_query(const AttentionShape &a, int b, int i, int h) {
    return attention_row(a.s, (int64_t)a.heads * a.d, a.d, b, i, h);
}

/* The rows of a head from query i on, and those of a group from key j on. */
template <typename T>
static __device__ __forceinline__ Rows<T> attention_query_rows(const AttentionShape &a, const T *x,
                                                               int64_t pitch, int b, int i, int h) {
    return {x + attention_row(a.s, pitch, a.d, b, i, h), pitch, a.s - i, a.d, a.aligned != 0};
}

template <typename T>
static __device__ __forceinline__ Rows<T> attention_key_rows(const AttentionShape &a, const T *x,
                                                             int64_t pitch, int b, int j, int g) {
    return {x + attention_row(a.t, pitch, a.d, b, j, g), pitch, a.t - j, a.d, a.aligned != 0};
}

/* Part of a call: `pairs` of all pairs of a batch and a group, from `pair` on, with the queries
 * from `query` to before `end` of all their heads. Pairs and their heads are numbered through all
 * batches. */
typedef struct AttentionPart {
    int pair, pairs, query, end;
} AttentionPart;

/* What all threads of a block know alike, made by one of them: it lies in shared memory, where it
 * takes no registers. All threads call. */
template <typename Known, typename Make>
static __device__ __forceinline__ const Known &attention_known(Make make) {
    __shared__ Known known;
    if (threadIdx.x == 0) known = make();
    __syncthreads();
    return known;
}

/* Shared memory of a block whose threads know a `Known` alike, beside the dynamic memory, which
 * begins at a multiple of 128 bytes. */
template <typename Known> static constexpr size_t attention_shared(size_t dynamic) {
    constexpr size_t multiple = 128;
    return (sizeof(Known) + multiple - 1) / multiple * multiple + dynamic;
}

/* A block that owns E::ROWS queries of a head, from `query` on, and goes through `count` tiles of
 * keys. Blocks that see most keys come first. */
template <typename E> struct QueryBlock {
    int b, h, g, query, count;

    QueryBlock() = default;
    __device__ __forceinline__ QueryBlock(const AttentionShape &a, const AttentionPart &part) {
        int shared = a.heads / a.groups, heads = part.pairs * shared,
            head = part.pair * shared + (int)blockIdx.x % heads;
        int last = (int)(gridDim.x / (unsigned)heads) - 1;
        b = head / a.heads;
        h = head % a.heads;
        g = h / shared;
        query = part.query + (last - (int)blockIdx.x / heads) * E::ROWS;
        count = attention_blocks(attention_visible(a, min(query + E::ROWS, a.s) - 1), E::COLUMNS);
    }

    /* Begins to load tile `it` of x, which is k or v. */
    __device__ __forceinline__ void load(const AttentionShape &a, typename E::T *tile,
                                         const typename E::T *x, int pitch, int it) const {
        tile_load<E, E::COLUMNS>(tile, attention_key_rows(a, x, pitch, b, it * E::COLUMNS, g));
    }
};

#endif
