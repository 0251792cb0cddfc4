/* Attention on a GPU: common code of the forward and backward kernels. C++ only.
 *
 * A block of threads owns some rows of the matrix of scores (queries; or keys for the gradients of
 * keys and values), and loops over the columns tile by tile. The whole matrix of scores is never
 * stored (Dao: FlashAttention-2, 2023). Without atomic additions, each run gets the same bits.
 *
 * Under `causal` a block loops only over tiles with a visible key (QueryBlock.count).
 *
 * The kernels are templates of an engine (attention_engine.h): tensor cores for bf16, plain
 * arithmetic for f32.
 *
 * q, y: [b.., s, h, d]; k, v: [b.., t, g, d]; lse: [b.., s, h]. Query head h reads key-value head h
 * / (heads / groups). */
#pragma once

#include "cuda/attention_engine.h"

#include <hetu/kernel.h>

#include <math.h>

static constexpr float log2_e = 1.4426950408889634f; // exponentials are computed as powers of 2

/* The positions of a piece's rows in the whole tensor: the first `fold` rows begin at index
 * `offset`; the other rows are `gap` further. */
typedef struct AttentionPlaces {
    int offset, fold, gap;
} AttentionPlaces;

/* The segment of each row of a piece (packed sequences), shape [b.., rows]; `at` NULL: none. */
typedef struct AttentionSegments {
    const void *at;
    int rows, wide; // wide: integers of 64 bits
} AttentionSegments;

/* The sizes of a call, as a kernel argument. */
typedef struct AttentionShape {
    int batch, s, t, heads, groups, d; // groups: key-value heads
    int causal, aligned;               // aligned: rows can be copied 16 bytes at a time
    float scale;                       // 1 / sqrt(d)
    int q_pitch, k_pitch, v_pitch;     // elements from one row of all heads to the next
    AttentionPlaces queries, keys;
    AttentionSegments segments, key_segments; // segments of queries and of keys
} AttentionShape;

/* Returns the shape of a call. `in` has q, k, v; `segments` has the segments of the queries and of
 * the keys. Ends the program if the kernels do not support the operands. */
AttentionShape attention_shape(const ht_view *in, const ht_view *segments, int causal);

/* Ends the program unless a view has the type of `like`. Clears a->aligned if the view's rows
 * cannot be copied 16 bytes at a time. */
void attention_same_type(AttentionShape *a, const ht_view *view, const ht_view *like);

/* Most bytes of scores that backward stores at a time, except that a part has at least 128 queries.
 * 512 MiB, unless a test changes the limit. */
extern int64_t attention_kept_bytes;

/* The memory to which a result is written. */
typedef struct AttentionResult {
    void *data;
    int bf16, pairs; // pairs: an element in an even column and the next one can be stored at once
    int pitch;       // elements from one row of all heads to the next
} AttentionResult;

AttentionResult attention_result(const ht_view *view);

/* Returns the engine's number for a call: 0, 1 or 2 for up to 64, 128 or 256 numbers a head. */
static inline int attention_width(const AttentionShape *a) {
    return a->d <= 64 ? 0 : a->d <= 128 ? 1 : 2;
}

/* Bytes of shared memory that a block may have on every GPU. For every width there is an engine
 * that needs no more. */
static constexpr int64_t attention_least_shared = 99 * 1024;

static __host__ __device__ inline int attention_blocks(int rows, int tile) {
    return (rows + tile - 1) / tile;
}

static __device__ __forceinline__ int attention_place(const AttentionPlaces &of, int i) {
    return of.offset + i + (i >= of.fold ? of.gap : 0);
}

/* Returns how many of a piece's rows are before an index of the whole tensor. */
static __device__ __forceinline__ int attention_before(const AttentionPlaces &of, int rows,
                                                       int place) {
    return min(max(place - of.offset, 0), of.fold) +
           min(max(place - of.offset - of.fold - of.gap, 0), rows - of.fold);
}

/* attention_visible returns how many keys of the piece query i sees (the first ones).
 * attention_first returns the first query of the piece that sees key j. */
static __device__ __forceinline__ int attention_visible(const AttentionShape &a, int i) {
    return a.causal ? attention_before(a.keys, a.t, attention_place(a.queries, i) + 1) : a.t;
}

static __device__ __forceinline__ int attention_first(const AttentionShape &a, int j) {
    return a.causal ? attention_before(a.queries, a.s, attention_place(a.keys, j)) : 0;
}

/* Returns the offset in elements of row i of a head; sequence b has `rows` rows, `pitch` apart. */
static __device__ inline int64_t attention_row(int rows, int64_t pitch, int d, int b, int i,
                                               int head) {
    return ((int64_t)b * rows + i) * pitch + (int64_t)head * d;
}

/* Returns the offset of query i of head h in y and dy, which are contiguous. */
static __device__ inline int64_t attention_query(const AttentionShape &a, int b, int i, int h) {
    return attention_row(a.s, (int64_t)a.heads * a.d, a.d, b, i, h);
}

/* Return the rows of a head from query i on, and the rows of a group from key j on. */
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

/* A part of a call: the (batch, group) pairs [pair, pair + pairs), with the queries [query, end) of
 * all their heads. Pairs and heads are numbered through all batches. */
typedef struct AttentionPart {
    int pair, pairs, query, end;
} AttentionPart;

/* Returns a value that thread 0 makes for all threads of a block. The value is in shared memory, so
 * it takes no registers. All threads of the block must call this. */
template <typename Known, typename Make>
static __device__ __forceinline__ const Known &attention_known(Make make) {
    __shared__ Known known;
    if (threadIdx.x == 0) known = make();
    __syncthreads();
    return known;
}

/* Returns a block's bytes of shared memory: a `Known`, rounded up to 128, and `dynamic` bytes. */
template <typename Known> static constexpr size_t attention_shared(size_t dynamic) {
    constexpr size_t multiple = 128;
    return (sizeof(Known) + multiple - 1) / multiple * multiple + dynamic;
}

/* A block that owns E::ROWS queries of a head, from `query` on, and loops over `count` tiles of
 * keys. The blocks that see the most keys come first. */
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
