/* cuda_loops.h: vectorized loads and stores, and sums over threads, for the kernels that hetucc
 * generates from rules. C++ only.
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
 * Every sum has a fixed order, so that results are reproducible: a tree over the threads of a
 * block, then over the blocks' partial sums, which the last block to arrive adds up.
 */
#ifndef HETU_CUDA_LOOPS_H
#define HETU_CUDA_LOOPS_H

#include <hetu/cuda.h>
#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

/* ---- neighbours ---- */

/* N elements, read by vector loads of at most 16 bytes. */
template <typename T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) ht_lanes {
    T at[N];
};

template <typename T, int N> static __device__ inline void ht_load(T (&to)[N], const T *from)
{
    const ht_lanes<T, N> lanes = *reinterpret_cast<const ht_lanes<T, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = lanes.at[e];
}

/* Maps an element type to the type that kernels compute in: f32 for bf16. */
template <int N> static __device__ inline void ht_load(float (&to)[N], const uint16_t *from)
{
    const ht_lanes<uint16_t, N> lanes = *reinterpret_cast<const ht_lanes<uint16_t, N> *>(from);
    for (int e = 0; e < N; e++)
        to[e] = ht_bf16_load(lanes.at[e]);
}

/* The unsigned type of a vector store: of the given bytes, at most 16. */
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

/* Writes a vector by one store instruction; nvcc may split an assignment of CUDA's vector types
 * into one store for each element. */
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

/* The destination must be in global memory. */
template <typename T, int N> static __device__ inline void ht_store(T *to, const T (&from)[N])
{
    typedef typename ht_unit_of<N *(int)sizeof(T)>::type Unit;
    constexpr int UNITS = N * (int)sizeof(T) / (int)sizeof(Unit);
    Unit unit[UNITS];
    memcpy(unit, from, sizeof from);
    for (int u = 0; u < UNITS; u++)
        ht_store_unit(reinterpret_cast<Unit *>(to) + u, unit[u]);
}

/* Packs two floats as bf16, in memory order, by one GPU instruction. */
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

/* Approximate tanhf and expf with fewer instructions: relative error at most 2^-13, without
 * subnormal numbers. */
#ifdef __CUDA_ARCH__
static __device__ inline float ht_half_exp2f(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static __device__ inline float ht_half_expf(float x) { return ht_half_exp2f(x * 1.442695041f); }

/* Computes tanh(x) as 1 - 2 / (e^2x + 1); near 0, where the difference cancels, returns x. */
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

/* Partial sums of the blocks of a group, and the number of blocks that have arrived (0 between
 * kernels). Kernels run one after another and share both. */
[[maybe_unused]] static __device__ double ht_sum_part[HT_SUM_PARTS];
[[maybe_unused]] static __device__ unsigned ht_sum_arrived[HT_SUM_GROUPS];

/* Returns the sum over the threads of a warp, on every thread. */
template <typename S> static __device__ inline S ht_warp_sum(S sum)
{
    for (int distance = HT_WARP / 2; distance; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    return sum;
}

/* Returns whether this block is the last of the gridDim.y blocks of its group to arrive. The last
 * block may read all that the other blocks wrote before. */
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

/* Sums over the threads of a one-dimensional block of at most HT_MOST_WARPS warps; the first warp
 * gets the sum. */
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

/* Returns the sum over the threads of a one-dimensional block, on every thread. */
template <typename S> static __device__ inline S ht_row_sum(S sum)
{
    __shared__ S total;
    sum = ht_warps_sum(sum);
    if (threadIdx.x == 0)
        total = sum;
    __syncthreads();
    return total;
}

/* Sums over the threads of a one-dimensional block, and over the gridDim.y blocks with this
 * blockIdx.x. Returns true on the one thread, of the last block, that gets the sum. */
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

/* Sums over the rows of a block of HT_WARP by HT_MOST_WARPS threads; row 0 gets the sums. */
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

/* Sums N neighbouring columns a thread over the rows of a block, and over the gridDim.y blocks with
 * this blockIdx.x. Returns true on the threads that get sums: row 0 of the last block. All threads
 * of the block must call it. */
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
