/* The common part of the runtime's CUDA kernels, in addition to <hetu/cuda.h>: numbers of a step,
 * reports of faults, scratch memory, properties of the device. C++ only.
 *
 * The launches of a step are captured into a graph and replayed. So nothing that changes between
 * steps may be an argument of a kernel; kernels read CudaStep instead. The host code of a kernel
 * runs only in the first steps. Host code may depend on shapes and addresses, but not on
 * call->step, call->seed or the numbers to which call->hyper points.
 *
 *     __global__ void dropout_device(float *y, const float *x, int64_t n, const CudaStep *step,
 *         CudaReport report)
 *     {
 *         uint64_t stream = ... step->seed ... step->step;
 *         if (x[i] != x[i])
 *             cuda_fault(report, i, 0, 0);
 *     }
 *     ht_launch(dropout_device, ht_blocks(n, 256), 256, 0, y, x, n, cuda_step(),
 *         cuda_report("element %lld is not a number"));
 */
#pragma once

#include <hetu/cuda.h>
#include <hetu/kernel.h>

enum {
    CUDA_HYPER = 64,     // most hyper-parameters of all optimizers of a program
    CUDA_ALIGNMENT = 256 // bytes; each value in scratch memory begins at a multiple of this number
};

/* Rounds a number of bytes up to the alignment of scratch memory. */
static inline int64_t cuda_aligned(int64_t bytes) {
    return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

/* The numbers that differ between steps of a program, in device memory. */
typedef struct CudaStep {
    float hyper[CUDA_HYPER]; // hyper-parameters; call->hyper of an optimizer points here
    int64_t step;            // training steps begun before this one
    uint64_t seed;           // the session's seed
    int training;            // 0 under ht_infer
} CudaStep;

/* Returns the device address of the numbers, which is the same in all steps. */
const CudaStep *cuda_step(void);

/* ---- faults ---- */

/* The first fault of a step; `number` is 0 if there is none. */
typedef struct CudaFault {
    unsigned long long number;
    long long value[3];
} CudaFault;

/* Argument of a kernel that may find a fault: memory for the fault, number of the message. */
typedef struct CudaReport {
    CudaFault *fault;
    unsigned long long number;
} CudaReport;

/* Returns the report for a message, a constant text with up to three %lld. If cuda_fault gets this
 * report, the program ends after that step with the message and the current operator's name. With
 * `piece`, the second number is a local index; the message has the index in the whole tensor. */
CudaReport cuda_report(const char *format, const ht_view *piece = nullptr);

/* Notes a fault; only the first is kept. The kernel continues, and must stay within its memory. */
static __device__ inline void cuda_fault(CudaReport report, long long a, long long b, long long c) {
    if (atomicCAS(&report.fault->number, 0ULL, report.number) != 0) return;
    report.fault->value[0] = a;
    report.fault->value[1] = b;
    report.fault->value[2] = c;
}

/* ---- memory and properties of the device ---- */

/* Returns device memory for one operator's intermediate values, aligned to 256 bytes. The next call
 * of any operator may use the memory, which stays until the end, since graphs keep its address. */
void *cuda_scratch(int64_t bytes);

/* Returns device memory with this content, for tables that kernels read. The memory lasts as long
 * as the program. Equal contents share one copy. */
const void *cuda_constant(const void *data, int64_t bytes);

/* Ends the program if the device is at fault, which may be the cause of a library's error. */
void cuda_check_device(void);

/* Sets *number to the GPU of this rank. Returns NULL, or why there is none. */
const char *choose_gpu(int *number);

/* Return the number of multiprocessors, and the bytes of shared memory that a block may have. */
int cuda_processors(void);
int64_t cuda_shared_bytes(void);
