/* cuda_runtime.h: as much of CUDA's runtime interface as hetucc uses, on the CPU, for tests on machines without a GPU.
 *
 * Device memory is host memory, a launch runs block after block in the caller's thread, and every call checks its arguments as CUDA does.
 * What CUDA would not notice either, or would end in a crash far away, ends here at once with a message: threads that wait at different
 * barriers, host pointers among a kernel's arguments, writes beyond an allocation, copies in the wrong direction, work captured into a
 * graph that never joins. The environment:
 *
 *     HETU_EMULATE_DEVICES  how many devices there are; 1. With 0 every call answers cudaErrorNoDevice.
 *     HETU_EMULATE_SHARED   KiB of shared memory that a block may have; 227
 *     HETU_EMULATE_MAJOR    the major number of the compute capability; 8
 *     HETU_EMULATE_ALGORITHMS  N:I: cuBLASLt proposes N algorithms, of which number I is the fastest; 1:0
 *     HETU_EMULATE_ORDER    "issue" (unless set): when it is issued, or "late", as late as waits allow, which shows missing ones, work runs.
 *     HETU_EMULATE_NODES    a file: each graph that is made ready adds a line, the number of its nodes.
 *     HETU_EMULATE_RANGES   a file, with the number of the process behind it: the ranges of NVTX
 *     HETU_EMULATE_FAULT    CODE:N:D: from the Nth kernel on that a process runs on device D, its calls answer with the error of this
 *                           number, as those of a GPU that has failed
 *     HETU_EMULATE_PACE     milliseconds that a kernel takes at least, while other streams go on; 0
 *     HETU_EMULATE_LOG      a file name: process P lists in NAME.P what has run, a line each with tabs: "kernel", "copy" or "graph" (it
 *                           begins), the number of its stream from 1 on, milliseconds at its begin and end, its number in the order in
 *                           which all was issued, and what the program did then.
 *     HETU_EMULATE_THREADS  "forward" or "backward": the order in which a block's threads (and a grid's blocks) start. Two orders with one
 *                           result mean that no barrier is missing where it matters.
 *     HETU_EMULATE_POISON   1: new device and shared memory is full of NaN (and of -1 for integers).
 *     HETU_EMULATE_PROTECT  1: host code that touches device memory dies with a segmentation fault, as it would without unified memory.
 */
#ifndef HETU_EMULATE_CUDA_RUNTIME_H
#define HETU_EMULATE_CUDA_RUNTIME_H

#include "device_language.h"

#include <functional>
#include <stddef.h>
#include <string>

#define CUDART_VERSION 13000
#define CUDART_CB

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidSymbol = 13,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorECCUncorrectable = 214,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureMerge = 902,
    cudaErrorStreamCaptureUnmatched = 903,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorStreamCaptureImplicit = 906,
    cudaErrorCapturedEvent = 907,
    cudaErrorGraphExecUpdateFailure = 910,
    cudaErrorUnknown = 999
} cudaError_t;

typedef enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
} cudaMemcpyKind;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef void (*cudaHostFn_t)(void *data);

#define cudaStreamLegacy ((cudaStream_t)1)
#define cudaStreamDefault 0u
#define cudaStreamNonBlocking 1u
#define cudaEventDefault 0u
#define cudaEventBlockingSync 1u
#define cudaEventDisableTiming 2u
#define cudaHostAllocDefault 0u
#define cudaHostAllocPortable 1u
#define cudaHostAllocMapped 2u
#define cudaHostRegisterDefault 0u
#define cudaHostRegisterPortable 1u
#define cudaDeviceScheduleAuto 0u
#define cudaDeviceScheduleBlockingSync 4u

typedef enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
} cudaStreamCaptureMode;

typedef enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
} cudaStreamCaptureStatus;

typedef enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2
} cudaGraphExecUpdateResult;

typedef struct cudaGraphExecUpdateResultInfo {
    cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode, errorFromNode;
} cudaGraphExecUpdateResultInfo;

typedef enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
} cudaFuncAttribute;

typedef enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
} cudaDeviceAttr;

typedef struct cudaUUID_st {
    char bytes[16];
} cudaUUID_t;

typedef struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], maxThreadsPerMultiProcessor;
    int major, minor, multiProcessorCount, l2CacheSize, memoryBusWidth, pciBusID, pciDeviceID, pciDomainID;
} cudaDeviceProp;

typedef enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
} cudaMemoryType;

typedef struct cudaPointerAttributes {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
} cudaPointerAttributes;

extern "C" {

const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);

cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaDeviceReset(void);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);

cudaError_t cudaMalloc(void **memory, size_t size);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocAsync(void **memory, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaMallocHost(void **memory, size_t size);
cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned flags);
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaHostRegister(void *memory, size_t size, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaMemGetInfo(size_t *free, size_t *total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory);
cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *memory, int value, size_t size);
cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);

cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value);
}

template <typename T> static inline cudaError_t cudaMalloc(T **memory, size_t size) { return cudaMalloc((void **)memory, size); }
template <typename T> static inline cudaError_t cudaMallocHost(T **memory, size_t size) { return cudaMallocHost((void **)memory, size); }

/* Variables of __device__ and __constant__ are the host's own. */
cudaError_t ht_emulated_symbol(void *symbol, size_t size, void **address);

template <typename T> static inline cudaError_t cudaGetSymbolAddress(void **address, T &symbol)
{
    return ht_emulated_symbol((void *)&symbol, sizeof symbol, address);
}

template <typename T>
static inline cudaError_t cudaMemcpyToSymbolAsync(T &symbol, const void *from, size_t size, size_t offset, cudaMemcpyKind kind,
                                                  cudaStream_t stream)
{
    void *address;
    cudaError_t error = cudaGetSymbolAddress(&address, symbol);
    return error ? error : cudaMemcpyAsync((char *)address + offset, from, size, kind, stream);
}

template <typename T>
static inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t size, size_t offset = 0,
                                             cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    void *address;
    cudaError_t error = cudaGetSymbolAddress(&address, symbol);
    return error ? error : cudaMemcpy((char *)address + offset, from, size, kind);
}

template <typename T>
static inline cudaError_t cudaMemcpyFromSymbol(void *to, T &symbol, size_t size, size_t offset = 0,
                                               cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    void *address;
    cudaError_t error = cudaGetSymbolAddress(&address, symbol);
    return error ? error : cudaMemcpy(to, (char *)address + offset, size, kind);
}

template <typename F> static inline cudaError_t cudaFuncSetAttribute(F *function, cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute((const void *)function, attribute, value);
}

template <typename F> static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, F, int threads, size_t shared)
{
    int by_threads = 2048 / threads, by_memory = shared ? (int)(232448 / shared) : 32;
    *blocks = by_threads < by_memory ? by_threads : by_memory;
    return cudaSuccess;
}

/* ---- for ht_launch and for stand-ins of other libraries ---- */

/* Puts work on a stream, as a kernel launch does: it runs in the stream's order, or becomes a node of the graph that the stream is captured
 * into. Ends the program when the stream is not valid. `kind` is what the log calls it, and `name` what it says of the launch where bytes are
 * counted. */
void ht_emulated_enqueue(cudaStream_t stream, std::function<void()> work, const char *kind = "kernel", const char *name = "kernel");

/* Puts work there that may have to wait for another process: it says whether it is done, and is tried again where it is not. */
void ht_emulated_enqueue_waiting(cudaStream_t stream, std::function<bool()> work);

/* The log: milliseconds now; what the program does; the number of a stream; and a line of what has run since `began`. */
double ht_emulated_now();
std::string ht_emulated_doing();
int ht_emulated_stream(cudaStream_t stream);
void ht_emulated_log(const char *kind, int stream, double began, const std::string &place, const std::string &what);

/* Runs what streams can run without waiting: for work that waits for another process by itself. */
void ht_emulated_advance();

/* Notes that work which is captured from a stream registers the allocation at `memory`: it may be freed when no graph holds it any more.
 * Nothing where the stream is not captured. */
void ht_emulated_register(cudaStream_t stream, const void *memory);

/* Whether [memory, memory + size) lies in one allocation on a device (or in pinned host memory, with `pinned`). */
bool ht_emulated_is_device(const void *memory, size_t size);
bool ht_emulated_is_pinned(const void *memory, size_t size);

/* Shared memory of a launch's blocks: the bytes that it asks for, and what those and the ones of __shared__ variables may come to: 48 KiB,
 * and after cudaFuncSetAttribute what the attribute allows and all that a block may have. */
struct ht_emulated_shared_limit {
    size_t dynamic, most;
    bool opted_in;
};

ht_emulated_shared_limit ht_emulated_limit_shared(const void *kernel, size_t dynamic);

/* Checks a launch's sizes; ends the program with a message. */
void ht_emulated_check_launch(dim3 grid, dim3 block, const ht_emulated_shared_limit &shared);

/* Ends the program when a word of an argument is an address of memory that a device cannot read. */
void ht_emulated_check_argument(int number, const void *argument, size_t size);

/* Runs `thread` for every thread of the grid, now. */
void ht_emulated_grid(dim3 grid, dim3 block, const ht_emulated_shared_limit &shared, const std::function<void()> &thread);

template <typename T> static inline void ht_emulated_check(int number, T argument)
{
    if constexpr (std::is_class_v<T>)
        __builtin_clear_padding(&argument);
    if constexpr (std::is_class_v<T> || std::is_pointer_v<T>)
        ht_emulated_check_argument(number, &argument, sizeof argument);
}

template <typename... Parameters>
static inline void ht_emulated_launch(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, void (*kernel)(Parameters...),
                                      std::type_identity_t<Parameters>... arguments)
{
    static_assert((sizeof(Parameters) + ... + 0) <= 4096, "a kernel's arguments have 4 KB; more only from CUDA 12.1 on");
    [[maybe_unused]] int number = 0;
    const ht_emulated_shared_limit limit = ht_emulated_limit_shared((const void *)kernel, shared);
    ht_emulated_check_launch(grid, block, limit);
    (ht_emulated_check(++number, arguments), ...);
    ht_emulated_enqueue(stream, [=] { ht_emulated_grid(grid, block, limit, [=] { kernel(arguments...); }); });
}

#endif
