/* A runtime for kernels alone. */
#include "cuda/multi_tensor.h"
#include "host.h"

#include <map>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

static struct {
    cudaStream_t stream;
    CudaStep *step;
    CudaFault *fault;
    std::map<unsigned long long, const char *> reports;
    void *scratch;
    int64_t scratch_bytes;
    std::map<std::string, void *> constants;
    int processors, shared;
} host;

/* ---- what kernels call ---- */

extern "C" cudaStream_t ht_compute_stream(void)
{
    cuda_collected_launch();
    return host.stream;
}

extern "C" void ht_cuda_check(cudaError_t code, const char *call, const char *file, int line)
{
    if (code != cudaSuccess)
        ht_fail("%s:%d: %s: %s", file, line, call, cudaGetErrorString(code));
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

const CudaStep *cuda_step(void) { return host.step; }

CudaReport cuda_report(const char *format, const ht_view *)
{
    for (const auto &[number, text] : host.reports)
        if (text == format)
            return {host.fault, number};
    host.reports[host.reports.size() + 1] = format;
    return {host.fault, host.reports.size()};
}

void *cuda_scratch(int64_t bytes)
{
    if (bytes > host.scratch_bytes) {
        host_wait();
        HT_CUDA(cudaFree(host.scratch));
        HT_CUDA(cudaMalloc(&host.scratch, (size_t)bytes));
        host.scratch_bytes = bytes;
    }
    return host.scratch;
}

const void *cuda_constant(const void *data, int64_t bytes)
{
    void *&copy = host.constants[std::string((const char *)data, (size_t)bytes)];
    if (!copy) {
        HT_CUDA(cudaMalloc(&copy, (size_t)bytes));
        host_upload(copy, data, bytes);
    }
    return copy;
}

int cuda_processors(void) { return host.processors; }
void cuda_check_device(void) {}
int64_t cuda_shared_bytes(void) { return host.shared; }

/* ---- what tests call ---- */

bool host_open(void)
{
    int count = 0;
    cudaError_t found = cudaGetDeviceCount(&count);
    if (found != cudaSuccess || count == 0) {
        fprintf(stderr, "no CUDA device was found (%s)\n", found == cudaSuccess ? "there are none" : cudaGetErrorString(found));
        return false;
    }
    HT_CUDA(cudaDeviceGetAttribute(&host.processors, cudaDevAttrMultiProcessorCount, 0));
    HT_CUDA(cudaDeviceGetAttribute(&host.shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    HT_CUDA(cudaStreamCreateWithFlags(&host.stream, cudaStreamNonBlocking));
    HT_CUDA(cudaMalloc(&host.step, sizeof *host.step));
    HT_CUDA(cudaMalloc(&host.fault, sizeof *host.fault));
    HT_CUDA(cudaMemset(host.fault, 0, sizeof *host.fault));
    return true;
}

const float *host_step(const float *hyper, int64_t step, uint64_t seed, int training)
{
    CudaStep numbers = {};
    if (hyper)
        memcpy(numbers.hyper, hyper, sizeof numbers.hyper);
    numbers.step = step;
    numbers.seed = seed;
    numbers.training = training;
    host_upload(host.step, &numbers, sizeof numbers);
    return host.step->hyper;
}

void host_wait(void) { HT_CUDA(cudaStreamSynchronize(ht_compute_stream())); }

const char *host_fault(void)
{
    static char message[256];
    CudaFault fault, none = {};
    host_download(&fault, host.fault, sizeof fault);
    host_upload(host.fault, &none, sizeof none);
    if (!fault.number)
        return nullptr;
    snprintf(message, sizeof message, host.reports[fault.number], fault.value[0], fault.value[1], fault.value[2]);
    return message;
}

void *host_alloc(int64_t bytes, int64_t shift)
{
    void *memory;
    HT_CUDA(cudaMalloc(&memory, (size_t)(bytes + shift > 0 ? bytes + shift : 1)));
    return (char *)memory + shift;
}

void host_free(void *memory, int64_t shift) { HT_CUDA(cudaFree((char *)memory - shift)); }

void host_upload(void *to, const void *from, int64_t bytes)
{
    host_wait();
    HT_CUDA(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyHostToDevice));
}

void host_download(void *to, const void *from, int64_t bytes)
{
    host_wait();
    HT_CUDA(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDeviceToHost));
}
