/* What the CUDA kernels of the runtime share beside <hetu/cuda.h>: the numbers of a step, reports
 * of what a kernel finds wrong, scratch memory, the device's figures. C++ only.
 *
 * The launches of a step are captured into a graph and replayed, so nothing that changes between
 * steps may be an argument of a kernel: it reads CudaStep. Host code of a kernel runs in the first
 * steps alone; it may depend on shapes and addresses, never on call->step, call->seed or the values
 * behind call->hyper.
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
#ifndef CUDA_CUDA_H
#define CUDA_CUDA_H

#include <hetu/cuda.h>
#include <hetu/kernel.h>

enum {
    CUDA_HYPER = 64,
    CUDA_ALIGNMENT = 256 // bytes: each value in scratch memory begins at a multiple
};

/* Rounds a number of bytes up to the alignment of scratch memory. */
static inline int64_t cuda_aligned(int64_t bytes) {
    return (bytes + CUDA_ALIGNMENT - 1) / CUDA_ALIGNMENT * CUDA_ALIGNMENT;
}

/* What differs between the steps of a program; in device memory. */
typedef struct CudaStep {
    float hyper[CUDA_HYPER]; // of the optimizers; call->hyper of an update points here
    int64_t step;            // training steps begun before this one
    uint64_t seed;           // of the session
    int training;            // 0 under ht_infer
} CudaStep;

/* Its address on the device, the same for all steps. */
const CudaStep *cuda_step(void);

/* ---- what a kernel finds wrong ---- */

/* The first fault of a step; `number` 0: none. */
typedef struct CudaFault {
    unsigned long long number;
    long long value[3];
} CudaFault;

/* An argument for a kernel that may find a fault: what to say, and where. */
typedef struct CudaReport {
    CudaFault *fault;
    unsigned long long number;
} CudaReport;

/* The report for a message: a constant text with up to three %lld. The program ends with it after
 * the step in which cuda_fault was called, and names the operator at work now. With `piece` the
 * second number is an element of that piece, and shown as that of the whole tensor. */
CudaReport cuda_report(const char *format, const ht_view *piece = nullptr);

/* Notes a fault; the first one counts. The kernel goes on, and must stay within its memory. */
static __device__ inline void cuda_fault(CudaReport report, long long a, long long b, long long c) {
    if (atomicCAS(&report.fault->number, 0ULL, report.number) != 0) return;
    report.fault->value[0] = a;
    report.fault->value[1] = b;
    report.fault->value[2] = c;
}

/* ---- memory and figures ---- */

/* Device memory for one operator's intermediate values, aligned to 256 bytes; the next call of any
 * operator may use it again. It is never given back, since graphs keep its address. */
void *cuda_scratch(int64_t bytes);

/* Memory with this content on the device, kept as long as the program runs: tables that an
 * operator's launches read. Equal contents share one copy. */
const void *cuda_constant(const void *data, int64_t bytes);

/* Ends the program where the device is at fault: before a library's error is reported that may come
 * of it. */
void cuda_check_device(void);

/* Multiprocessors, and bytes of shared memory that a block may have. */
int cuda_processors(void);
int64_t cuda_shared_bytes(void);

#endif
