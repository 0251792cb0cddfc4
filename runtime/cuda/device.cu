/* The GPU as the device of this rank: its selection, its memory, its channel. */
#include "device/device.h"

#include "base/fail.h"
#include "cuda/channels.h"
#include "cuda/cuda.h"
#include "exchange/async_exchange.h"
#include "cuda/autotune.h"
#include "cuda/streams.h"
#include "transport/world.h"

#include <stdlib.h>
#include <vector>
#include <hetu/rt.h>
#include <stdio.h>
#include <string.h>

static struct {
    int number;
    int processors, shared_bytes;
} device;

/* Returns whether an error is a fault of the device or the machine. Faults are uncorrectable memory
 * and NVLink errors, a lost device (Xid 79 is an unknown error), a failing driver. Numbers are used
 * because CUDA 12 lacks names of CUDA 13. Illegal addresses, illegal instructions and failed
 * launches are the program's errors. */
static bool is_device_fault(cudaError_t code) {
    static const int faults[] = {
        35,  // cudaErrorInsufficientDriver
        46,  // cudaErrorDevicesUnavailable
        100, // cudaErrorNoDevice
        127, // cudaErrorStartupFailure
        214, // cudaErrorECCUncorrectable
        220, // cudaErrorNvlinkUncorrectable
        226, // cudaErrorContained
        304, // cudaErrorOperatingSystem
        714, // cudaErrorHardwareStackError
        802, // cudaErrorSystemNotReady
        803, // cudaErrorSystemDriverMismatch
        805, // cudaErrorMpsConnectionFailed
        806, // cudaErrorMpsRpcFailure
        807, // cudaErrorMpsServerNotReady
        911, // cudaErrorExternalDevice
        999, // cudaErrorUnknown
    };
    for (int fault : faults)
        if ((int)code == fault) return true;
    return false;
}

extern "C" void ht_cuda_check(cudaError_t code, const char *call, const char *file, int line) {
    if (code == cudaSuccess) return;
    if (is_device_fault(code))
        fail_as(FAIL_DEVICE, "GPU %d is at fault: %s (%s:%d); CUDA failed at: %s", device.number,
                cudaGetErrorString(code), file, line, call);
    ht_fail("%s (%s:%d); CUDA failed at: %s", cudaGetErrorString(code), file, line, call);
}

/* Calls cudaFree(nullptr), which does nothing, but returns the error of an earlier device fault. */
void cuda_check_device(void) {
    const cudaError_t code = cudaFree(nullptr);
    if (is_device_fault(code)) HT_CUDA(code);
}

int cuda_processors(void) { return device.processors; }

int64_t cuda_shared_bytes(void) { return device.shared_bytes; }

void cuda_move_now(const ChannelRun *run, const ht_reshard_step *step) {
    cuda_move(run, step, ht_compute_stream());
}

extern "C" const char *device_open(void) {
    const char *missing = choose_gpu(&device.number);
    if (missing) return missing;
    HT_CUDA(cudaSetDevice(device.number));
    HT_CUDA(
        cudaDeviceGetAttribute(&device.processors, cudaDevAttrMultiProcessorCount, device.number));
    HT_CUDA(cudaDeviceGetAttribute(&device.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin,
                                   device.number));
    cuda_streams_open();
    cuda_step_open();
    return NULL;
}

extern "C" void device_connect(void) {
    channel_use(choose_channel(device.number));
    autotune_open();
}

extern "C" void device_close(void) {
    cuda_streams_wait();
    if (channel_of_device()->close) channel_of_device()->close();
    channel_use(NULL);
    cuda_memory_close();
    cuda_marks_close();
    cuda_step_close();
    cuda_streams_close();
    device = {};
}

extern "C" void *device_alloc(int64_t bytes) {
    void *memory = NULL;
    size_t size = bytes > 0 ? (size_t)bytes : 1, free_bytes = 0, all_bytes = 0;
    cudaError_t code = cudaMalloc(&memory, size);
    if (code == cudaErrorMemoryAllocation) {
        HT_CUDA(cudaMemGetInfo(&free_bytes, &all_bytes));
        ht_fail("no memory for %.1f MB of tensors on this GPU; %.1f of its %.1f MB are free",
                (double)size / 1e6, (double)free_bytes / 1e6, (double)all_bytes / 1e6);
    }
    HT_CUDA(code);
    return memory;
}

extern "C" void device_free(void *memory) { HT_CUDA(cudaFree(memory)); }

extern "C" double device_trial(void) { return 0; }

extern "C" bool device_is_host(void) { return false; }

extern "C" void device_zero(void *memory, int64_t bytes) {
    HT_CUDA(cudaMemsetAsync(memory, 0, (size_t)bytes, ht_compute_stream()));
}

extern "C" void *device_alloc_host(int64_t bytes) {
    void *memory = NULL;
    HT_CUDA(cudaMallocHost(&memory, bytes > 0 ? (size_t)bytes : 1));
    return memory;
}

extern "C" void device_free_host(void *memory) {
    if (memory) HT_CUDA(cudaFreeHost(memory));
}

extern "C" void device_upload(void *to, const void *from, int64_t bytes) {
    HT_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyHostToDevice, ht_compute_stream()));
}

extern "C" void device_download(void *to, const void *from, int64_t bytes) {
    HT_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToHost, ht_compute_stream()));
}

extern "C" void device_wait(void) { cuda_streams_wait(); }

extern "C" void *device_map(void *memory, int64_t bytes, DeviceAccess access) {
    void *host = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!host) ht_fail("no memory for %.1f MB of a tensor's copy on the host", (double)bytes / 1e6);
    if (access == DEVICE_READ && bytes > 0) {
        device_download(host, memory, bytes);
        device_wait();
    }
    return host;
}

extern "C" void device_unmap(void *memory, void *host, int64_t bytes, DeviceAccess access) {
    if (access == DEVICE_WRITE && bytes > 0) {
        device_upload(memory, host, bytes);
        device_wait();
    }
    free(host);
}
