/* The engine of attention for f32, with plain arithmetic (attention_engine.h). C++ only. */
#pragma once

#include "cuda/attention_swizzle.h"

/* A block of 16 x 16 threads owns 32 rows. Thread (x, y): rows y, y + 16, columns x, x + 16, ... */
template <int D_, int COLUMNS_ = 32> struct PlainEngine {
    using T = float;
    static constexpr int side = 16, D = D_, threads = side * side, ROWS = 2 * side,
                         COLUMNS = COLUMNS_;
    static constexpr int thread_rows = ROWS / side, thread_columns = COLUMNS / side, buffers = 1;
    static constexpr bool pairs = false, passes = false;
    static constexpr int scratch_pitch = COLUMNS + 1,
                         scratch_bytes = ROWS * scratch_pitch * (int)sizeof(float);

    template <int W> struct Sums {
        static constexpr int columns = W / side;
        float value[thread_rows][columns];
        __device__ __forceinline__ float &operator()(int r, int c) { return value[r][c]; }
        __device__ __forceinline__ float operator()(int r, int c) const { return value[r][c]; }
        static __device__ __forceinline__ int column(int c) {
            return (int)threadIdx.x % side + c * side;
        }
    };
    using Scores = Sums<COLUMNS>;

    static __device__ __forceinline__ int row(int r) { return (int)threadIdx.x / side + r * side; }
    static __device__ __forceinline__ int column(int c) { return Scores::column(c); }
    static __device__ __forceinline__ float exp2(float x) { return exp2f(x); }

    static __device__ __forceinline__ float row_max(float x) {
#pragma unroll
        for (int distance = side / 2; distance > 0; distance /= 2)
            x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
        return x;
    }

    static __device__ __forceinline__ float row_sum(float x) {
#pragma unroll
        for (int distance = side / 2; distance > 0; distance /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, distance);
        return x;
    }

    static __device__ __forceinline__ void score(Scores &s, const T *a, const T *b) {
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
                    s(r, c) += left.x * right[c].x + left.y * right[c].y + left.z * right[c].z +
                               left.w * right[c].w;
            }
        }
    }

    /* Computes o += s b; threads of one warp share a row of scores through `scratch`. */
    template <int W>
    static __device__ __forceinline__ void add(Sums<W> &o, Scores &s, const T *b, int first,
                                               void *scratch) {
        add(o, s, b, first, scratch, [](int, int) {});
    }

    template <int W, typename Work>
    static __device__ __forceinline__ void add(Sums<W> &o, Scores &s, const T *b, int first,
                                               void *scratch, Work work) {
        for_each_score<PlainEngine>(work);
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

    static __device__ __forceinline__ void keep(T *to, int pitch, const Scores &s) {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < thread_columns; c++)
                to[kept_place(row(r), column(c), pitch)] = s(r, c);
    }

    template <int W>
    static __device__ __forceinline__ void add_kept(Sums<W> &o, const T *kept, const T *b,
                                                    void *scratch) {
        Scores s;
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < thread_columns; c++)
                s(r, c) = kept[kept_place(column(c), row(r), ROWS / kept_side)];
        add(o, s, b, 0, scratch);
    }

    template <int W> static __device__ __forceinline__ void clear(Sums<W> &o) {
#pragma unroll
        for (int r = 0; r < thread_rows; r++)
#pragma unroll
            for (int c = 0; c < W / side; c++) o(r, c) = 0;
    }

  private:
    /* Returns the offset of element (i, j) of kept scores. */
    static __device__ __forceinline__ int64_t kept_place(int i, int j, int pitch) {
        return kept_matrix(i / kept_side, j / kept_side, pitch) + i % kept_side * kept_side +
               j % kept_side;
    }
};
