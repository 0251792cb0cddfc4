/* cuda.h: how emitted CUDA C and the CUDA kernels of the runtime launch work. C++ only.
 *
 *     __global__ void scale_device(float *y, const float *x, int64_t n)
 *     {
 *         for (int64_t i = ht_thread(); i < n; i += ht_threads())
 *             y[i] = 2 * x[i];
 *     }
 *     ht_launch(scale_device, ht_blocks(n, 256), 256, 0, y, x, n);
 *
 * All kernels of operators go to one stream in order, ht_compute_stream(); the runtime may capture
 * it into a graph. With HT_EMULATED, test/cuda/emulate runs kernels on the CPU.
 */
#ifndef HETU_CUDA_H
#define HETU_CUDA_H

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdint.h>

extern "C" {
/* Returns the stream of all kernels of this rank. */
cudaStream_t ht_compute_stream(void);

/* Ends the program unless `code` is cudaSuccess. The message has the rank, the running operator and
 * CUDA's error. */
void ht_cuda_check(cudaError_t code, const char *call, const char *file, int line);
}

#define HT_CUDA(call) ht_cuda_check((call), #call, __FILE__, __LINE__)

/* Declares a block's dynamic shared memory as `type *name`: the `shared` bytes of ht_launch. */
#ifdef HT_EMULATED
#define HT_SHARED(type, name) type *name = (type *)ht_emulated_shared()
#else
#define HT_SHARED(type, name)                                                                                                              \
    extern __shared__ __align__(128) unsigned char ht_shared_bytes[];                                                                      \
    type *name = (type *)ht_shared_bytes
#endif

/* Return this thread's index within the grid, and the number of threads of the grid. */
static __device__ inline int64_t ht_thread(void) { return (int64_t)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ inline int64_t ht_threads(void) { return (int64_t)gridDim.x * blockDim.x; }

/* Returns the number of blocks for `count` elements, one element a thread: at least 1 and at most
 * 65536. Kernels loop with the grid's stride over the other elements. */
static inline unsigned ht_blocks(int64_t count, int threads)
{
    const int64_t most = 1 << 16;
    int64_t blocks = (count + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

/* Runs a kernel on a stream, after all earlier work of the stream; `shared` is in bytes. */
template <typename... Parameters, typename... Arguments>
static inline void ht_launch_on(cudaStream_t stream, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared,
                                Arguments... arguments)
{
    if (shared > 0) // a block that uses more than 48 KiB, with its __shared__ variables, needs this attribute
        HT_CUDA(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared));
#ifdef HT_EMULATED
    ht_emulated_launch(grid, block, shared, stream, kernel, Parameters(arguments)...);
#else
    kernel<<<grid, block, shared, stream>>>(Parameters(arguments)...);
#endif
    HT_CUDA(cudaGetLastError());
}

/* Runs a kernel on ht_compute_stream(). */
template <typename... Parameters, typename... Arguments>
static inline void ht_launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared, Arguments... arguments)
{
    ht_launch_on(ht_compute_stream(), kernel, grid, block, shared, arguments...);
}

#endif
