/* cuda_sums.h: sums over the threads of a block and over blocks, for the kernels that hetucc
 * generates from rules. C++ only.
 *
 *     double sum = 0; // gridDim.y = 4 blocks of 256 threads for each element of y
 *     for (int k = blockIdx.y * 256 + threadIdx.x; k < 8192; k += 4 * 256)
 *         sum += x[k];
 *     if (ht_block_sum(sum))
 *         y[blockIdx.x] = (float)sum;
 *
 * Every sum has a fixed order, so that results are reproducible: a tree over the threads of a
 * block, then over the blocks' partial sums, which the last block to arrive adds up.
 */
#ifndef HETU_CUDA_SUMS_H
#define HETU_CUDA_SUMS_H

#include <hetu/cuda.h>

#include <stddef.h>
#include <stdint.h>

/* The type S of a sum is double or int64_t. */

enum { HT_WARP = 32, HT_MOST_WARPS = 8, HT_SUM_PARTS = 1 << 17, HT_SUM_GROUPS = 1 << 9 };

/* Partial sums of the blocks of a group (blocks with one blockIdx.x), and the number of blocks that
 * have arrived; 0 between kernels. Kernels share both, since they run one after another. */
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
 * block may read all that the other blocks wrote before they arrived. */
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

/* Returns the sum over the threads of a one-dimensional block of at most HT_MOST_WARPS warps; at
 * least the first warp has the sum. */
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
 * blockIdx.x. Returns true only on the thread that has the sum: thread 0 of the last block. */
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

/* Sums the columns of a block of HT_WARP by HT_MOST_WARPS threads; each row gets the sums. */
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

/* Sums, for each thread, N neighbouring columns over the rows of a block, and over the gridDim.y
 * blocks with this blockIdx.x. Returns true on the threads that get sums: row 0 of the last block.
 * All threads of the block must call it. */
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
