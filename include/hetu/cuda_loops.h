/* cuda_loops.h: what the kernels that hetucc generates from rules are made of: neighbouring
 * elements loaded and stored at once, and sums over threads. C++ only.
 *
 *     float x_v[4];
 *     ht_load(x_v, x + i0);               // x + i0 is a multiple of 16 bytes
 *
 *     double sum = 0;                     // a block of 256 threads for each element of the result,
 *                                         or gridDim.y of them
 *     for (int k = blockIdx.y * 256 + threadIdx.x; k < 8192; k += 4 * 256)
 *         sum += x[k];
 *     if (ht_block_sum(sum))
 *         y[blockIdx.x] = (float)sum;
 *
 * Every sum is added up in one order: threads by halves, then the parts of the blocks, by the last
 * block to arrive.
 */
#ifndef HETU_CUDA_LOOPS_H
#define HETU_CUDA_LOOPS_H

#include <hetu/cuda.h>
#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

/* ---- neighbours ---- */

/* N elements that are read as one, up to 16 bytes at a time. */
template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) ht_lanes {
    T at[N];
};

template <typename T, int N> static __device__ inline void ht_load(T (&to)[N], const T *from)
{
    const ht_lanes<T, N> lanes = *reinterpret_cast<const ht_lanes<T, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = lanes.at[e];
}

/* bf16 is computed with as f32. */
template <int N> static __device__ inline void ht_load(float (&to)[N], const uint16_t *from)
{
    const ht_lanes<uint16_t, N> lanes = *reinterpret_cast<const ht_lanes<uint16_t, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = ht_bf16_load(lanes.at[e]);
}

/* What is stored at once, of so many bytes or 16 of them. */
template <int BYTES> struct ht_unit_of {
    typedef uint4 type;
};
template <> struct ht_unit_of<8> {
    typedef uint2 type;
};
template <> struct ht_unit_of<4> {
    typedef unsigned type;
};
template <> struct ht_unit_of<2> {
    typedef unsigned short type;
};

/* One store. Of an assignment of CUDA's vectors the compiler makes one store for each element now
 * and then. */
#ifdef HT_EMULATED
template <typename Unit> static inline void ht_store_unit(Unit *to, Unit unit)
{
    if (reinterpret_cast<uintptr_t>(to) % sizeof unit)
        abort();
    memcpy(to, &unit, sizeof unit);
}
#else
template <typename Unit> static __device__ inline void ht_store_unit(Unit *to, Unit unit) { *to = unit; }

static __device__ inline void ht_store_unit(uint4 *to, uint4 unit)
{
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(unit.x), "r"(unit.y), "r"(unit.z), "r"(unit.w) : "memory");
}

static __device__ inline void ht_store_unit(uint2 *to, uint2 unit)
{
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(unit.x), "r"(unit.y) : "memory");
}
#endif

/* To global memory alone. */
template <typename T, int N> static __device__ inline void ht_store(T *to, const T (&from)[N])
{
    typedef typename ht_unit_of<N *(int)sizeof(T)>::type Unit;
    constexpr int UNITS = N * (int)sizeof(T) / (int)sizeof(Unit);
    Unit unit[UNITS];
    memcpy(unit, from, sizeof from);
    for (int u = 0; u < UNITS; u++)
        ht_store_unit(reinterpret_cast<Unit *>(to) + u, unit[u]);
}

/* Two bf16 in the order of memory, which a GPU makes by one instruction. */
static __device__ inline uint32_t ht_bf16_pair(float low, float high)
{
#ifdef __CUDA_ARCH__
    uint32_t pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#else
    return (uint32_t)ht_bf16_store(low) | (uint32_t)ht_bf16_store(high) << 16;
#endif
}

template <int N> static __device__ inline void ht_store(uint16_t *to, const float (&from)[N])
{
    if constexpr (N % 2) {
        uint16_t half[N];
        for (int e = 0; e < N; e++)
            half[e] = ht_bf16_store(from[e]);
        ht_store(to, half);
    } else {
        uint32_t pair[N / 2];
        for (int e = 0; e < N; e += 2)
            pair[e / 2] = ht_bf16_pair(from[e], from[e + 1]);
        ht_store(reinterpret_cast<uint32_t *>(to), pair);
    }
}

/* ---- functions whose results are rounded to bf16 ---- */

/* tanhf and expf within 2^-13 of the result where no number is subnormal: a fraction of the
 * instructions. */
#ifdef __CUDA_ARCH__
static __device__ inline float ht_half_exp2f(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ inline float ht_half_expf(float x) { return ht_half_exp2f(x * 1.442695041f); }

/* 1 - 2 / (e^2x + 1); near 0, where that cancels, x itself. */
static __device__ inline float ht_half_tanhf(float x)
{
    const float sum = ht_half_exp2f(x * 2.885390082f) + 1;
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(sum));
    const float y = 1 - 2 * inverse;
    return fabsf(x) < 0x1p-9f ? x : y;
}
#else
static __device__ inline float ht_half_expf(float x) { return expf(x); }
static __device__ inline float ht_half_tanhf(float x) { return tanhf(x); }
#endif

/* ---- sums; S is double or int64_t ---- */

enum { HT_WARP = 32, HT_MOST_WARPS = 8, HT_SUM_PARTS = 1 << 17, HT_SUM_GROUPS = 1 << 9 };

/* What blocks leave for the last of their group, and how many of a group have arrived; 0 between
 * kernels. Kernels run one after another, so they share it. */
[[maybe_unused]] static __device__ double ht_sum_part[HT_SUM_PARTS];
[[maybe_unused]] static __device__ unsigned ht_sum_arrived[HT_SUM_GROUPS];

/* The sum over the threads of a warp, in each of them. */
template <typename S> static __device__ inline S ht_warp_sum(S sum)
{
    for (int distance = HT_WARP / 2; distance; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return sum;
}

/* Whether this block is the last of the gridDim.y blocks of its group to come here; what they wrote
 * before can then be read. */
static __device__ inline bool ht_last_block(void)
{
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        last = atomicInc(&ht_sum_arrived[blockIdx.x], gridDim.y - 1) == gridDim.y - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/* Adds up the first dimension of a block of at most HT_MOST_WARPS warps in a row; the sum is in the
 * first warp. */
template <typename S> static __device__ inline S ht_warps_sum(S sum)
{
    __shared__ S warps[HT_MOST_WARPS];
    const unsigned lane = threadIdx.x % HT_WARP;
    sum = ht_warp_sum(sum);
    __syncthreads();
    if (lane == 0)
        warps[threadIdx.x / HT_WARP] = sum;
    __syncthreads();
    return ht_warp_sum(lane < blockDim.x / HT_WARP ? warps[lane] : S(0));
}

/* The sum over the threads of a block in a row, in each of them. */
template <typename S> static __device__ inline S ht_row_sum(S sum)
{
    __shared__ S total;
    sum = ht_warps_sum(sum);
    if (threadIdx.x == 0)
        total = sum;
    __syncthreads();
    return total;
}

/* Adds up over the threads of a block in a row, and over the gridDim.y blocks with this blockIdx.x.
 * Whether this thread has the sum: one of the last block. */
template <typename S> static __device__ inline bool ht_block_sum(S &sum)
{
    S *part = reinterpret_cast<S *>(ht_sum_part) + (size_t)blockIdx.x * gridDim.y;
    sum = ht_warps_sum(sum);
    if (gridDim.y == 1)
        return threadIdx.x == 0;
    if (threadIdx.x == 0)
        part[blockIdx.y] = sum;
    if (!ht_last_block())
        return false;
    sum = 0;
    for (unsigned p = threadIdx.x; p < gridDim.y; p += blockDim.x)
        sum += part[p];
    sum = ht_warps_sum(sum);
    return threadIdx.x == 0;
}

/* Adds up over the rows of a block of HT_WARP by HT_MOST_WARPS threads; the sums are in row 0. */
template <int N, typename S> static __device__ inline void ht_rows_sum(S (&sum)[N])
{
    __shared__ S rows[HT_MOST_WARPS][N][HT_WARP];
    __syncthreads();
    for (int e = 0; e < N; e++)
        rows[threadIdx.y][e][threadIdx.x] = sum[e];
    __syncthreads();
    for (int e = 0; e < N; e++) {
        sum[e] = 0;
        for (unsigned y = 0; y < HT_MOST_WARPS; y++)
            sum[e] += rows[y][e][threadIdx.x];
    }
}

/* Adds up N neighbouring columns a thread over the rows of a block, and over the gridDim.y blocks
 * with this blockIdx.x. Whether this thread has sums: row 0 of the last block. Every thread of the
 * block comes here. */
template <int N, typename S> static __device__ inline bool ht_column_sums(S (&sum)[N])
{
    S *part = reinterpret_cast<S *>(ht_sum_part) + (size_t)blockIdx.x * gridDim.y * N * HT_WARP + threadIdx.x;
    ht_rows_sum(sum);
    if (gridDim.y == 1)
        return threadIdx.y == 0;
    if (threadIdx.y == 0)
        for (int e = 0; e < N; e++)
            part[(blockIdx.y * N + e) * HT_WARP] = sum[e];
    if (!ht_last_block())
        return false;
    for (int e = 0; e < N; e++) {
        sum[e] = 0;
        for (unsigned p = threadIdx.y; p < gridDim.y; p += HT_MOST_WARPS)
            sum[e] += part[(p * N + e) * HT_WARP];
    }
    ht_rows_sum(sum);
    return threadIdx.y == 0;
}

#endif
