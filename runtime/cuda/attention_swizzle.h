/* Tiles: matrix rows in shared memory, for engines of attention (attention_engine.h). C++ only.
 *
 * A row of a tile has D elements, in pieces of 16 bytes. The pieces of a row are permuted
 * (swizzled), so that accesses to rows and to columns of pieces have no bank conflicts. */
#pragma once

#include "cuda/tensor_core.h"

#include <type_traits>

template <typename T> static constexpr int piece_elements = 16 / (int)sizeof(T);

/* Returns the bytes from a tile's start to piece `piece` of a row. Bits of the row and of the piece
 * are combined by exclusive or, so offsets can be computed in parts:
 *
 *     tile_offset(row, a ^ b) = tile_offset(row, a) ^ tile_offset(0, b)
 *     tile_offset(row + 8 n, a) = tile_offset(row, a) + tile_offset(8 n, 0)
 */
template <int D, typename T>
static __device__ __forceinline__ constexpr int tile_offset(int row, int piece) {
    constexpr int piece_bytes = 16, row_bytes = D * (int)sizeof(T);
    static_assert(row_bytes % (8 * piece_bytes) == 0, "eight pieces of a row change places");
    return (row * row_bytes + (row & 7) * piece_bytes) ^ (piece * piece_bytes);
}

template <int D, typename T>
static __device__ __forceinline__ T *tile_piece(T *tile, int row, int piece) {
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return (T *)((Byte *)tile + tile_offset<D, T>(row, piece));
}

template <int D, typename T>
static __device__ __forceinline__ T &tile_element(T *tile, int row, int column) {
    return tile_piece<D>(tile, row, column / piece_elements<T>)[column % piece_elements<T>];
}

/* `valid` rows of d elements in global memory, `pitch` elements apart. aligned: to 16 bytes. */
template <typename T> struct Rows {
    const T *data;
    int64_t pitch;
    int valid, d;
    bool aligned;
};

/* Starts to copy ROWS rows into a tile, asynchronously if `aligned`; missing rows and columns
 * become zeros. The data is visible after copy_commit, copy_wait and a barrier. */
template <typename E, int ROWS>
static __device__ __forceinline__ void tile_load(typename E::T *tile,
                                                 const Rows<typename E::T> &from) {
    constexpr int elements = piece_elements<typename E::T>, pieces = E::D / elements;
    static_assert(ROWS * pieces % E::threads == 0 && E::threads % pieces == 0,
                  "every thread copies one piece of several rows");
    int first = (int)threadIdx.x / pieces, piece = (int)threadIdx.x % pieces,
        column = piece * elements;
    if (from.aligned && from.valid >= ROWS && from.d == E::D) {
        const typename E::T *data = from.data + first * from.pitch + column;
#pragma unroll
        for (int row = 0; row < ROWS;
             row += E::threads / pieces, data += E::threads / pieces * from.pitch)
            copy_begin(tile_piece<E::D>(tile, first + row, piece), data, true);
        return;
    }
    if (from.aligned) {
#pragma unroll 1
        for (int row = first; row < ROWS; row += E::threads / pieces) {
            bool valid = row < from.valid && column < from.d;
            copy_begin(tile_piece<E::D>(tile, row, piece),
                       valid ? from.data + row * from.pitch + column : from.data, valid);
        }
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < ROWS * E::D; i += E::threads) {
        int row = i / E::D, at = i % E::D;
        tile_element<E::D>(tile, row, at) = row < from.valid && at < from.d
                                                ? from.data[row * from.pitch + at]
                                                : typename E::T(0.0f);
    }
}

/* Kept scores: matrices of 8 x 8 elements, row after row; matrix (i, j) begins at element
 * kept_matrix(i, j, pitch). */
static constexpr int kept_side = 8, kept_elements = kept_side * kept_side;

static __device__ __forceinline__ constexpr int64_t kept_matrix(int i, int j, int pitch) {
    return ((int64_t)i * pitch + j) * kept_elements;
}

/* Starts an asynchronous copy of a tile of E::COLUMNS x E::ROWS kept scores from `from`. Unless the
 * tile is `whole`, matrices (i, j) for which there(i, j) is false become zeros. */
template <typename E, typename There>
static __device__ __forceinline__ void kept_load(typename E::T *tile, const typename E::T *from,
                                                 int pitch, bool whole, There there) {
    using T = typename E::T;
    constexpr int across = E::ROWS / kept_side, pieces = kept_elements / piece_elements<T>,
                  step = E::threads / (across * pieces);
    static_assert(E::threads % (across * pieces) == 0 && E::COLUMNS / kept_side % step == 0,
                  "every thread copies one piece of several rows");
    int first = (int)threadIdx.x / (across * pieces), at = (int)threadIdx.x * piece_elements<T>,
        column = at % (across * kept_elements);
    const T *data = from + kept_matrix(first, 0, pitch) + column;
    T *to = tile + at;
    if (whole) {
#pragma unroll
        for (int i = 0; i < E::COLUMNS / kept_side;
             i += step, data += kept_matrix(step, 0, pitch), to += E::threads * piece_elements<T>)
            copy_begin(to, data, true);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < E::COLUMNS / kept_side;
         i += step, data += kept_matrix(step, 0, pitch), to += E::threads * piece_elements<T>) {
        bool valid = there(first + i, column / kept_elements);
        copy_begin(to, valid ? data : from, valid);
    }
}

/* Loads tiles in a loop of `count` iterations, where load(it, buffer) begins to load tile `it`:
 *
 *     tile_begin<buffers>(count, load);
 *     for (int it = 0; it < count; it++) {
 *         int buffer = tile_next<buffers>(it, count, load);
 *         ... tile `it` is in that buffer; with two buffers, the next tile is being loaded ...
 *     }
 *
 * Copies that began before tile_begin have ended when the first tile is loaded. */
template <int buffers, typename Load>
static __device__ __forceinline__ void tile_begin(int count, Load load) {
    if (buffers == 2 && count > 0) load(0, 0);
    copy_commit();
}

template <int buffers, typename Load>
static __device__ __forceinline__ int tile_next(int it, int count, Load load) {
    if (buffers == 1) {
        __syncthreads();
        load(it, 0);
        copy_commit();
    }
    copy_wait<0>();
    __syncthreads();
    if (buffers == 2 && it + 1 < count) {
        load(it + 1, (it + 1) % 2);
        copy_commit();
    }
    return buffers == 2 ? it % 2 : 0;
}

/* Calls work(r, c) for each score of this thread, with compile-time indices. */
template <typename E, typename Work>
static __device__ __forceinline__ void for_each_score(Work work) {
#pragma unroll
    for (int c = 0; c < E::thread_columns; c++)
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++) work(r, c);
}
