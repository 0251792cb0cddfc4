/* Engines: what a block of threads does with tiles of rows in shared memory.
 *
 *     typename E::Scores s;                          this thread's part of ROWS x COLUMNS scores
 *     E::score(s, a, b);                             s = a bᵀ for the tiles a[ROWS][D], b[COLUMNS][D]
 *     typename E::template Sums<W> o;                this thread's part of ROWS x W sums
 *     E::add(o, s, b, first, scratch);               o += s b[COLUMNS][first ..], s rounded to the tiles' type
 *
 * Both are seen by thread: element (r, c) lies in row E::row(r) and column E::column(c) of the block's matrix. All columns of a row lie in
 * threads of one warp, E::row_max and E::row_sum fold over them.
 *
 * A tile's row is D elements, in pieces of 16 bytes that are permuted so that neither rows nor columns of pieces meet in a bank of memory.
 */
#ifndef CUDA_ATTENTION_ENGINE_H
#define CUDA_ATTENTION_ENGINE_H

#include "cuda/tensor_core.h"

#include <type_traits>

/* ---- tiles ---- */

template <typename T> static constexpr int piece_elements = 16 / (int)sizeof(T);

/* Bytes from a tile's begin to piece `piece` of a row. Bits of the row and of the piece meet in an exclusive or alone:
 *
 *     tile_offset(row, a ^ b) = tile_offset(row, a) ^ tile_offset(0, b)
 *     tile_offset(row + 8 n, a) = tile_offset(row, a) + tile_offset(8 n, 0)
 */
template <int D, typename T> static __device__ __forceinline__ constexpr int tile_offset(int row, int piece)
{
    constexpr int piece_bytes = 16, row_bytes = D * (int)sizeof(T);
    static_assert(row_bytes % (8 * piece_bytes) == 0, "eight pieces of a row change places");
    return (row * row_bytes + (row & 7) * piece_bytes) ^ (piece * piece_bytes);
}

template <int D, typename T> static __device__ __forceinline__ T *tile_piece(T *tile, int row, int piece)
{
    using Byte = std::conditional_t<std::is_const_v<T>, const char, char>;
    return (T *)((Byte *)tile + tile_offset<D, T>(row, piece));
}

template <int D, typename T> static __device__ __forceinline__ T &tile_element(T *tile, int row, int column)
{
    return tile_piece<D>(tile, row, column / piece_elements<T>)[column % piece_elements<T>];
}

/* Rows in global memory: `valid` of them with d elements each. */
template <typename T> struct Rows {
    const T *data;
    int64_t pitch;
    int valid, d;
    bool aligned;
};

/* Begins to copy ROWS rows into a tile of an engine; zeros where there are none. Copies are there after copy_commit, copy_wait and a
 * barrier. */
template <typename E, int ROWS> static __device__ __forceinline__ void tile_load(typename E::T *tile, const Rows<typename E::T> &from)
{
    constexpr int elements = piece_elements<typename E::T>, pieces = E::D / elements;
    static_assert(ROWS * pieces % E::threads == 0 && E::threads % pieces == 0, "every thread copies one piece of several rows");
    int first = (int)threadIdx.x / pieces, piece = (int)threadIdx.x % pieces, column = piece * elements;
    if (from.aligned) {
#pragma unroll
        for (int i = 0; i < ROWS * pieces / E::threads; i++) {
            int row = first + i * (E::threads / pieces);
            bool valid = row < from.valid && column < from.d;
            copy_begin(tile_piece<E::D>(tile, row, piece), valid ? from.data + row * from.pitch + column : from.data, valid);
        }
        return;
    }
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < ROWS * E::D; i += E::threads) {
        int row = i / E::D, at = i % E::D;
        tile_element<E::D>(tile, row, at) = row < from.valid && at < from.d ? from.data[row * from.pitch + at] : typename E::T(0.0f);
    }
}

/* A loop over `count` tiles, where load(it, buffer) begins to load one:
 *
 *     tile_begin<buffers>(count, load);
 *     for (int it = 0; it < count; it++) {
 *         int buffer = tile_next<buffers>(it, count, load);
 *         ... tile `it` is in that buffer; with two buffers the next one is on its way ...
 *     }
 *
 * What was loaded before tile_begin is there with the first tile. */
template <int buffers, typename Load> static __device__ __forceinline__ void tile_begin(int count, Load load)
{
    if (buffers == 2 && count > 0)
        load(0, 0);
    copy_commit();
}

template <int buffers, typename Load> static __device__ __forceinline__ int tile_next(int it, int count, Load load)
{
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

/* Calls work(r, c) for all of a thread's scores, with numbers that are known to the compiler. */
template <typename E, typename Work> static __device__ __forceinline__ void for_each_score(Work work)
{
#pragma unroll
    for (int c = 0; c < E::thread_columns; c++)
#pragma unroll
        for (int r = 0; r < E::thread_rows; r++)
            work(r, c);
}

/* ---- tensor cores, bf16 ---- */

/* Four warps own 16 * PARTS rows each. A warp's fragments are those of tensor_core.h. */
template <int D_, int PARTS, int COLUMNS_> struct TensorEngine {
    using T = __nv_bfloat16;
    static constexpr int D = D_, warps = 4, threads = 32 * warps, ROWS = 16 * PARTS * warps, COLUMNS = COLUMNS_;
    static constexpr int thread_rows = 2 * PARTS, thread_columns = COLUMNS / 4, buffers = 2, scratch_bytes = 0;

    template <int W> struct Sums {
        static constexpr int columns = W / 4;
        float value[PARTS][W / 8][4];
        __device__ __forceinline__ float &operator()(int r, int c) { return value[r / 2][c / 2][r % 2 * 2 + c % 2]; }
        __device__ __forceinline__ float operator()(int r, int c) const { return value[r / 2][c / 2][r % 2 * 2 + c % 2]; }
    };
    using Scores = Sums<COLUMNS>;

    static __device__ __forceinline__ int lane() { return (int)threadIdx.x % 32; }
    static __device__ __forceinline__ int first_row() { return (int)threadIdx.x / 32 * 16 * PARTS; }
    static __device__ __forceinline__ int row(int r) { return first_row() + r * 8 + lane() / 4; }
    static __device__ __forceinline__ int column(int c) { return c / 2 * 8 + lane() % 4 * 2 + c % 2; }
    static __device__ __forceinline__ float exp2(float x) { return fast_exp2(x); }

    static __device__ __forceinline__ float row_max(float x)
    {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
        return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    }

    static __device__ __forceinline__ float row_sum(float x)
    {
        x += __shfl_xor_sync(0xffffffffu, x, 1);
        return x + __shfl_xor_sync(0xffffffffu, x, 2);
    }

    static __device__ __forceinline__ void score(Scores &s, const T *a, const T *b)
    {
        int from_a = at_this_place(tile_offset<D, T>(first_row() + lane() % 16, lane() / 16));
        int from_b = at_this_place(tile_offset<D, T>(lane() % 8 + lane() / 16 * 8, lane() / 8 % 2));
        clear(s);
#pragma unroll
        for (int k = 0; k < D / 16; k++) {
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                tensor_load(left[p], at(a, from_a ^ tile_offset<D, T>(0, 2 * k), 16 * p));
#pragma unroll
            for (int n = 0; n < COLUMNS / 16; n++) {
                uint32_t right[4];
                tensor_load(right, at(b, from_b ^ tile_offset<D, T>(0, 2 * k), 16 * n));
                multiply(s, n, left, right);
            }
        }
    }

    /* `first` is a multiple of 128 or 0; scores stay in registers. */
    template <int W> static __device__ __forceinline__ void add(Sums<W> &o, const Scores &s, const T *b, int first, void *)
    {
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            int from_b = at_this_place(tile_offset<D, T>(lane() % 16, first / 8 ^ lane() / 16));
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    left[p][i] = tensor_pack(s.value[p][2 * k + i / 2][i % 2 * 2], s.value[p][2 * k + i / 2][i % 2 * 2 + 1]);
#pragma unroll
            for (int n = 0; n < W / 16; n++) {
                uint32_t right[4];
                tensor_load_transposed(right, at(b, from_b ^ tile_offset<D, T>(0, 2 * n), 16 * k));
                multiply(o, n, left, right);
            }
        }
    }

    template <int W> static __device__ __forceinline__ void clear(Sums<W> &o)
    {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < W / 4; c++)
                o(r, c) = 0;
    }

  private:
    /* `offset` bytes into a tile, and `rows` rows (a multiple of 8) behind. */
    static __device__ __forceinline__ const void *at(const T *tile, int offset, int rows)
    {
        return (const char *)tile + offset + tile_offset<D, T>(rows, 0);
    }

    /* Columns 16 n to 16 n + 15 of o += left right. */
    template <int W>
    static __device__ __forceinline__ void multiply(Sums<W> &o, int n, const uint32_t (&left)[PARTS][4], const uint32_t (&right)[4])
    {
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            tensor_multiply(o.value[p][2 * n], left[p], right[0], right[1]);
            tensor_multiply(o.value[p][2 * n + 1], left[p], right[2], right[3]);
        }
    }
};

/* ---- plain arithmetic, f32 ---- */

/* 16 x 16 threads own 32 rows: thread (x, y) has rows y, y + 16 and columns x, x + 16, ... */
template <int D_> struct PlainEngine {
    using T = float;
    static constexpr int D = D_, threads = 256, ROWS = 32, COLUMNS = 32, thread_rows = 2, thread_columns = 2, buffers = 1;
    static constexpr int side = 16, scratch_pitch = COLUMNS + 1, scratch_bytes = ROWS * scratch_pitch * (int)sizeof(float);

    template <int W> struct Sums {
        static constexpr int columns = W / side;
        float value[thread_rows][columns];
        __device__ __forceinline__ float &operator()(int r, int c) { return value[r][c]; }
        __device__ __forceinline__ float operator()(int r, int c) const { return value[r][c]; }
    };
    using Scores = Sums<COLUMNS>;

    static __device__ __forceinline__ int row(int r) { return (int)threadIdx.x / side + r * side; }
    static __device__ __forceinline__ int column(int c) { return (int)threadIdx.x % side + c * side; }
    static __device__ __forceinline__ float exp2(float x) { return exp2f(x); }

    static __device__ __forceinline__ float row_max(float x)
    {
#pragma unroll
        for (int distance = side / 2; distance > 0; distance /= 2)
            x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
        return x;
    }

    static __device__ __forceinline__ float row_sum(float x)
    {
#pragma unroll
        for (int distance = side / 2; distance > 0; distance /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, distance);
        return x;
    }

    static __device__ __forceinline__ void score(Scores &s, const T *a, const T *b)
    {
        clear(s);
#pragma unroll 4
        for (int k = 0; k < D / 4; k++) {
            float4 right[thread_columns];
#pragma unroll
            for (int c = 0; c < thread_columns; c++)
                right[c] = *(const float4 *)tile_piece<D>(b, column(c), k);
#pragma unroll
            for (int r = 0; r < thread_rows; r++) {
                float4 left = *(const float4 *)tile_piece<D>(a, row(r), k);
#pragma unroll
                for (int c = 0; c < thread_columns; c++)
                    s(r, c) += left.x * right[c].x + left.y * right[c].y + left.z * right[c].z + left.w * right[c].w;
            }
        }
    }

    /* A row of scores is shared by threads of one warp, through `scratch`. */
    template <int W> static __device__ __forceinline__ void add(Sums<W> &o, const Scores &s, const T *b, int first, void *scratch)
    {
        float *p = (float *)scratch;
        __syncwarp();
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < thread_columns; c++)
                p[row(r) * scratch_pitch + column(c)] = s(r, c);
        __syncwarp();
        for (int j = 0; j < COLUMNS; j++)
#pragma unroll
            for (int c = 0; c < W / side; c++) {
                float right = tile_element<D>(b, j, first + column(c));
#pragma unroll
                for (int r = 0; r < thread_rows; r++)
                    o(r, c) += p[row(r) * scratch_pitch + j] * right;
            }
    }

    template <int W> static __device__ __forceinline__ void clear(Sums<W> &o)
    {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < W / side; c++)
                o(r, c) = 0;
    }
};

#endif
