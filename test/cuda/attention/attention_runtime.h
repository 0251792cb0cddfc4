/* What the kernels of attention need of a runtime, for programs that call them alone. Included once a program. */
#ifndef TEST_ATTENTION_RUNTIME_H
#define TEST_ATTENTION_RUNTIME_H

#include "operators/kernels.h"
#include "cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

static cudaStream_t attention_stream;

extern "C" cudaStream_t ht_compute_stream(void) { return attention_stream; }

extern "C" void ht_cuda_check(cudaError_t code, const char *call, const char *file, int line)
{
    if (code != cudaSuccess) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(code));
        exit(1);
    }
}

extern "C" void ht_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(1);
}

void *cuda_scratch(int64_t bytes)
{
    static void *memory;
    static int64_t size;
    if (bytes > size) {
        HT_CUDA(cudaFree(memory));
        HT_CUDA(cudaMalloc(&memory, (size_t)bytes));
        size = bytes;
    }
    return memory;
}

/* What cuda_shared_bytes answers; 0: what the GPU has. */
static int64_t attention_shared_bytes;

int64_t cuda_shared_bytes(void)
{
    int bytes = 0;
    HT_CUDA(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    return attention_shared_bytes ? attention_shared_bytes : bytes;
}

void cuda_check_device(void) {}

static inline void open_runtime(void) { HT_CUDA(cudaStreamCreateWithFlags(&attention_stream, cudaStreamNonBlocking)); }

static inline ht_view view_of(void *data, ht_dtype dtype, const std::vector<int64_t> &extent)
{
    ht_view view = {};
    view.data = data;
    view.dtype = dtype;
    view.rank = (int)extent.size();
    for (size_t i = 0; i < extent.size(); i++)
        view.extent[i] = view.global[i] = extent[i];
    return view;
}

/* A call of a kernel of attention; the views are the caller's. */
struct AttentionCall {
    ht_attr attr;
    ht_call call;

    AttentionCall(const ht_view *operand, int operands, const ht_view *result, int results, int causal) : attr(), call()
    {
        attr.i = causal;
        call.attr = &attr;
        call.operand = operand;
        call.operand_count = operands;
        call.result = result;
        call.result_count = results;
    }
    AttentionCall(const AttentionCall &) = delete;
};

#endif
