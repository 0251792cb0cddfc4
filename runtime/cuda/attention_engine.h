/* Engines: what a block of threads does with tiles of rows in shared memory.
 *
 *     typename E::Scores s;                          this thread's part of ROWS x COLUMNS scores
 *     E::score(s, a, b);                             s = a bᵀ for the tiles a[ROWS][D],
 *                                                    b[COLUMNS][D]
 *     typename E::template Sums<W> o;                this thread's part of ROWS x W sums
 *     E::add(o, s, b, first, scratch);               o += s b[COLUMNS][first ..], s rounded to the
 *                                                    tiles' type
 *     E::keep(to, pitch, s);                         keeps s in global memory, rounded to the
 *                                                    tiles' type, as matrices of 8 x 8
 *     E::add_kept(o, kept, b, scratch);              o += keptᵀ b[COLUMNS] for a tile of kept
 *                                                    scores, kept[COLUMNS][ROWS]
 *
 * Both are seen by thread: element (r, c) lies in row E::row(r) and column E::column(c) or
 * Sums::column(c) of the block's matrix. All columns of a row lie in threads of one warp,
 * E::row_max and E::row_sum fold over them. Where E::pairs, columns c and c + 1 for an even c are
 * neighbours.
 *
 * Where E::passes, the columns of a row lie in several warps, and there is no E::add: scores go
 * through shared memory,
 *
 *     E::keep(passed, E::COLUMNS / kept_side, s);
 *     __syncthreads();
 *     E::add_passed(o, passed, b, first);            o += s b[COLUMNS][first ..]
 *
 * A tile's row is D elements, in pieces of 16 bytes that are permuted so that neither rows nor
 * columns of pieces meet in a bank of memory.
 */
#ifndef CUDA_ATTENTION_ENGINE_H
#define CUDA_ATTENTION_ENGINE_H

#include "cuda/tensor_core.h"

#include <type_traits>

/* ---- tiles ---- */

template <typename T> static constexpr int piece_elements = 16 / (int)sizeof(T);

/* Bytes from a tile's begin to piece `piece` of a row. Bits of the row and of the piece meet in an
 * exclusive or alone:
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

/* Rows in global memory: `valid` rows of d elements each. */
template <typename T> struct Rows {
    const T *data;
    int64_t pitch;
    int valid, d;
    bool aligned;
};

/* Starts an asynchronous copy of ROWS rows into a tile; missing rows become zeros. The data is
 * visible after copy_commit, copy_wait and a barrier. */
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

/* A loop over `count` tiles, where load(it, buffer) begins to load one:
 *
 *     tile_begin<buffers>(count, load);
 *     for (int it = 0; it < count; it++) {
 *         int buffer = tile_next<buffers>(it, count, load);
 *         ... tile `it` is in that buffer; with two buffers the next one is on its way ...
 *     }
 *
 * What was loaded before tile_begin is there with the first tile. */
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

/* ---- tensor cores, bf16 ---- */

/* Four warps own 16 * PARTS rows each; or ACROSS of them do, and a part of the columns each. A
 * warp's fragments are those of tensor_core.h.
 *
 * Shared memory is what limits: a warp loads (rows + columns) / 16 fragments for rows * columns /
 * 128 products. Sizes and unrolled loops are such that all sums stay in registers: test/cuda/sass
 * looks at that. */
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

    /* `first` is a multiple of 128 or 0; scores stay in registers. */
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
    /* `offset` bytes into a tile, and `rows` rows (a multiple of 8) behind. */
    static __device__ __forceinline__ const void *at(const T *tile, int offset, int rows) {
        return (const char *)tile + offset + tile_offset<D, T>(rows, 0);
    }

    /* o += left b[16 k .. 16 k + 15][first ..]. */
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

    /* Columns 16 n to 16 n + 15 of o += left right. */
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

/* ---- plain arithmetic, f32 ---- */

/* 16 x 16 threads own 32 rows: thread (x, y) has rows y, y + 16 and columns x, x + 16, ... */
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

#endif
