/* The engine of attention for bf16, on tensor cores (attention_engine.h). C++ only. */
#pragma once

#include "cuda/attention_swizzle.h"

/* Four warps own 16 * PARTS rows each. With ACROSS > 1, groups of ACROSS warps share rows and
 * divide the columns. tensor_core.h describes a warp's fragments.
 *
 * Shared memory bounds the speed: a warp loads (rows + columns) / 16 fragments for rows * columns /
 * 128 products. Tile sizes and unrolling keep sums in registers; test/cuda/sass checks this. */
template <int D_, int PARTS, int COLUMNS_, int ACROSS = 1> struct TensorEngine {
    using T = __nv_bfloat16;
    static constexpr int D = D_, warps = 4, threads = 32 * warps,
                         ROWS = 16 * PARTS * warps / ACROSS, COLUMNS = COLUMNS_;
    static constexpr int thread_rows = 2 * PARTS, thread_columns = COLUMNS / ACROSS / 4,
                         buffers = 2;
    static constexpr bool pairs = true, passes = ACROSS > 1;
    static constexpr int scratch_bytes = passes ? 2 * ROWS * COLUMNS * (int)sizeof(T) : 0;

    template <int W> struct Sums {
        static constexpr int columns = W / ACROSS / 4;
        float value[PARTS][W / ACROSS / 8][4];
        __device__ __forceinline__ float &operator()(int r, int c) {
            return value[r / 2][c / 2][r % 2 * 2 + c % 2];
        }
        __device__ __forceinline__ float operator()(int r, int c) const {
            return value[r / 2][c / 2][r % 2 * 2 + c % 2];
        }
        static __device__ __forceinline__ int first_column() {
            return warp() % ACROSS * (W / ACROSS);
        }
        static __device__ __forceinline__ int column(int c) {
            return first_column() + c / 2 * 8 + lane() % 4 * 2 + c % 2;
        }
    };
    using Scores = Sums<COLUMNS>;

    static __device__ __forceinline__ int lane() { return (int)threadIdx.x % 32; }
    static __device__ __forceinline__ int warp() { return (int)threadIdx.x / 32; }
    static __device__ __forceinline__ int first_row() { return warp() / ACROSS * 16 * PARTS; }
    static __device__ __forceinline__ int row(int r) { return first_row() + r * 8 + lane() / 4; }
    static __device__ __forceinline__ int column(int c) { return Scores::column(c); }
    static __device__ __forceinline__ float exp2(float x) { return fast_exp2(x); }

    static __device__ __forceinline__ float row_max(float x) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
        return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    }

    static __device__ __forceinline__ float row_sum(float x) {
        x += __shfl_xor_sync(0xffffffffu, x, 1);
        return x + __shfl_xor_sync(0xffffffffu, x, 2);
    }

    static __device__ __forceinline__ void score(Scores &s, const T *a, const T *b) {
        int from_a = at_this_place(tile_offset<D, T>(first_row() + lane() % 16, lane() / 16));
        int from_b = at_this_place(tile_offset<D, T>(
            Scores::first_column() + lane() % 8 + lane() / 16 * 8, lane() / 8 % 2));
        clear(s);
#pragma unroll 2
        for (int k = 0; k < D / 16; k++) {
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                tensor_load(left[p], at(a, from_a ^ tile_offset<D, T>(0, 2 * k), 16 * p));
#pragma unroll
            for (int n = 0; n < COLUMNS / ACROSS / 16; n++) {
                uint32_t right[4];
                tensor_load(right, at(b, from_b ^ tile_offset<D, T>(0, 2 * k), 16 * n));
                multiply(s, n, left, right);
            }
        }
    }

    /* Adds s b to o. `first` is a multiple of 128 or 0. Scores stay in registers. */
    template <int W>
    static __device__ __forceinline__ void add(Sums<W> &o, Scores &s, const T *b, int first,
                                               void *scratch) {
        add(o, s, b, first, scratch, [](int, int) {});
    }

    template <int W, typename Work>
    static __device__ __forceinline__ void add(Sums<W> &o, Scores &s, const T *b, int first, void *,
                                               Work work) {
        static_assert(!passes, "a warp has whole rows");
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
#pragma unroll
            for (int r = 0; r < thread_rows; r++)
#pragma unroll
                for (int c = 4 * k; c < 4 * k + 4; c++) work(r, c);
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    left[p][i] = tensor_pack(s.value[p][2 * k + i / 2][i % 2 * 2],
                                             s.value[p][2 * k + i / 2][i % 2 * 2 + 1]);
            add_step(o, k, left, b, first);
        }
    }

    static __device__ __forceinline__ void keep(T *to, int pitch, const Scores &s) {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int n = 0; n < COLUMNS / ACROSS / kept_side; n++)
                ((uint32_t *)(to + kept_matrix(first_row() / kept_side + r,
                                               Scores::first_column() / kept_side + n,
                                               pitch)))[lane()] =
                    tensor_pack(s.value[r / 2][n][r % 2 * 2], s.value[r / 2][n][r % 2 * 2 + 1]);
    }

    template <int W>
    static __device__ __forceinline__ void add_passed(Sums<W> &o, const T *passed, const T *b,
                                                      int first) {
        constexpr int across = COLUMNS / kept_side;
        const T *from = passed +
                        kept_matrix(first_row() / kept_side + lane() / 8 % 2, lane() / 16, across) +
                        lane() % 8 * kept_side;
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                tensor_load(left[p], from + kept_matrix(2 * p, 2 * k, across));
            add_step(o, k, left, b, first);
        }
    }

    template <int W>
    static __device__ __forceinline__ void add_kept(Sums<W> &o, const T *kept, const T *b, void *) {
        constexpr int across = ROWS / kept_side;
        const T *from = kept +
                        kept_matrix(lane() / 16, first_row() / kept_side + lane() / 8 % 2, across) +
                        lane() % 8 * kept_side;
#pragma unroll
        for (int k = 0; k < COLUMNS / 16; k++) {
            uint32_t left[PARTS][4];
#pragma unroll
            for (int p = 0; p < PARTS; p++)
                tensor_load_transposed(left[p], from + kept_matrix(2 * k, 2 * p, across));
            add_step(o, k, left, b, 0);
        }
    }

    template <int W> static __device__ __forceinline__ void clear(Sums<W> &o) {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < Sums<W>::columns; c++) o(r, c) = 0;
    }

  private:
    /* Returns the address `offset` bytes into a tile and `rows` rows (a multiple of 8) further. */
    static __device__ __forceinline__ const void *at(const T *tile, int offset, int rows) {
        return (const char *)tile + offset + tile_offset<D, T>(rows, 0);
    }

    /* Computes o += left b[16 k .. 16 k + 15][first ..]. */
    template <int W>
    static __device__ __forceinline__ void
    add_step(Sums<W> &o, int k, const uint32_t (&left)[PARTS][4], const T *b, int first) {
        static_assert(ACROSS == 1 || W / ACROSS % 64 == 0,
                      "bits of the first column and of the others are not the same");
        int from_b = at_this_place(
            tile_offset<D, T>(lane() % 16, (first + Sums<W>::first_column()) / 8 ^ lane() / 16));
#pragma unroll
        for (int n = 0; n < W / ACROSS / 16; n++) {
            uint32_t right[4];
            tensor_load_transposed(right, at(b, from_b ^ tile_offset<D, T>(0, 2 * n), 16 * k));
            multiply(o, n, left, right);
        }
    }

    /* Computes columns 16 n to 16 n + 15 of o += left right. */
    template <int W>
    static __device__ __forceinline__ void
    multiply(Sums<W> &o, int n, const uint32_t (&left)[PARTS][4], const uint32_t (&right)[4]) {
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            tensor_multiply(o.value[p][2 * n], left[p], right[0], right[1]);
            tensor_multiply(o.value[p][2 * n + 1], left[p], right[2], right[3]);
        }
    }
};
