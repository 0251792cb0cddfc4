/* Devices, memory and copies. */
#include "inside.h"

#include <map>
#include <stdarg.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace emulate {

void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("emulated CUDA: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(stderr);
    abort();
}

const Options &options()
{
    auto is = [](const char *name, const char *value) { return getenv(name) && !strcmp(getenv(name), value); };
    auto number = [](const char *name, int unset) { return getenv(name) ? atoi(getenv(name)) : unset; };
    static const Options read = {
        number("HETU_EMULATE_DEVICES", 1), number("HETU_EMULATE_SHARED", 227) * 1024, number("HETU_EMULATE_MAJOR", 8),
        is("HETU_EMULATE_ORDER", "late"),  is("HETU_EMULATE_THREADS", "backward"),    is("HETU_EMULATE_POISON", "1"),
        is("HETU_EMULATE_PROTECT", "1"),   is("HETU_EMULATE_TRAFFIC", "1"),           (double)number("HETU_EMULATE_PACE", 0)};
    return read;
}

namespace {

constexpr size_t page = 4096, device_bytes = (size_t)1 << 40, alignment = 256, canary_bytes = 256;
constexpr size_t reported_bytes = (size_t)80 << 30;
constexpr unsigned char nan_byte = 0xff; // also behind every allocation: who reads there gets NaN

thread_local cudaError_t last_error;
thread_local int device;

struct Range {
    size_t size;
    int device;
};
typedef std::map<const char *, Range> Ranges;

Ranges device_memory, pinned_memory, symbols;

/* Device memory lies in one reserved range, so that it can be protected at once. */
struct Arena {
    char *begin, *end, *mapped;
    std::multimap<size_t, char *> unused;
} arena;

int access_depth;

cudaError_t no_device() { return report(standing_error()); }

int device_of_process; // as it was set last, by any thread
cudaError_t fault;

void open_arena()
{
    arena.begin = (char *)mmap(nullptr, device_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena.begin == MAP_FAILED)
        fail("no address space for device memory");
    arena.end = arena.mapped = arena.begin;
}

/* The protection of all device memory in use. */
void protect(int mode)
{
    if (arena.mapped > arena.begin && mprotect(arena.begin, (size_t)(arena.mapped - arena.begin), mode))
        fail("cannot protect device memory");
}

char *take_memory(size_t size)
{
    auto found = arena.unused.find(size);
    if (found != arena.unused.end()) {
        char *memory = found->second;
        arena.unused.erase(found);
        return memory;
    }
    char *memory = arena.end;
    if (memory + size > arena.begin + device_bytes)
        return nullptr;
    arena.end += size;
    if (arena.end > arena.mapped) {
        arena.mapped = arena.begin + ((size_t)(arena.end - arena.begin) + page - 1) / page * page;
        protect(PROT_READ | PROT_WRITE);
    }
    return memory;
}

/* The range that holds an address, or NULL. */
const Ranges::value_type *range_of(const Ranges &ranges, const void *memory)
{
    auto after = ranges.upper_bound((const char *)memory);
    if (after == ranges.begin())
        return nullptr;
    --after;
    return (const char *)memory < after->first + after->second.size ? &*after : nullptr;
}

bool inside(const Ranges &ranges, const void *memory, size_t size)
{
    const Ranges::value_type *range = range_of(ranges, memory);
    return range && (const char *)memory + size <= range->first + range->second.size;
}

void check_canary(const Ranges::value_type &range, const char *when)
{
    for (size_t i = 0; i < canary_bytes; i++)
        if ((unsigned char)range.first[range.second.size + i] != nan_byte)
            fail("something wrote %zu bytes beyond an allocation of %zu bytes (found %s)", i, range.second.size, when);
}

size_t padded(size_t size) { return (size + canary_bytes + alignment - 1) / alignment * alignment; }

} // namespace

cudaError_t report(cudaError_t error)
{
    if (error)
        last_error = error;
    return error;
}

cudaError_t standing_error() { return options().devices > 0 ? fault : cudaErrorNoDevice; }

void count_kernel()
{
    static long long ran;
    static const char *const wanted = getenv("HETU_EMULATE_FAULT");
    int code, on;
    long long first;
    ran++;
    if (wanted && !fault && sscanf(wanted, "%d:%lld:%d", &code, &first, &on) == 3 && on == device_of_process && ran >= first)
        fault = (cudaError_t)code;
}

int current_device() { return device; }

char *device_range(size_t *size)
{
    *size = (size_t)(arena.mapped - arena.begin);
    return arena.begin;
}

DeviceAccess::DeviceAccess()
{
    if (options().protect && access_depth++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

DeviceAccess::~DeviceAccess()
{
    if (options().protect && --access_depth == 0)
        protect(PROT_NONE);
}

void poison(void *memory, size_t size)
{
    if (options().poison && size)
        memset(memory, nan_byte, size);
}

bool is_host_address(uint64_t word)
{
    const uint64_t lowest = (uint64_t)5 << 44, highest = (uint64_t)8 << 44; // programs, heaps, mappings; two small integers lie below
    if (word < lowest || word >= highest)
        return false;
    const void *address = (const void *)word;
    if (((const char *)address >= arena.begin && (const char *)address < arena.begin + device_bytes) || range_of(pinned_memory, address) ||
        range_of(symbols, address))
        return false;
    unsigned char resident;
    return mincore((void *)(word / page * page), 1, &resident) == 0;
}

void check_canaries(const char *when)
{
    DeviceAccess access;
    for (const auto &range : device_memory)
        check_canary(range, when);
}

} // namespace emulate

using namespace emulate;

bool ht_emulated_is_device(const void *memory, size_t size)
{
    Guard guard;
    return inside(device_memory, memory, size) || inside(symbols, memory, size);
}

bool ht_emulated_is_pinned(const void *memory, size_t size)
{
    Guard guard;
    return inside(pinned_memory, memory, size);
}

cudaError_t ht_emulated_symbol(void *symbol, size_t size, void **address)
{
    symbols[(const char *)symbol] = {size, device};
    *address = symbol;
    return no_device();
}

void ht_emulated_check_launch(dim3 grid, dim3 block, const ht_emulated_shared_limit &shared)
{
    const unsigned most_threads = 1024, most_depth = 64, most_rows = 65535;
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (threads == 0 || threads > most_threads || block.z > most_depth)
        fail("a launch with blocks of %u x %u x %u threads; there are 1 to %u", block.x, block.y, block.z, most_threads);
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX || grid.y > most_rows || grid.z > most_rows)
        fail("a launch with a grid of %u x %u x %u blocks", grid.x, grid.y, grid.z);
    check_shared(shared, 0);
}

void ht_emulated_check_argument(int number, const void *argument, size_t size)
{
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, (const char *)argument + i, sizeof word);
        if (is_host_address(word))
            fail("argument %d of a kernel points to host memory: %#llx at byte %zu of %zu", number, (unsigned long long)word, i, size);
    }
}

/* ---- errors ---- */

struct ErrorText {
    cudaError_t error;
    const char *name, *text;
};

static const ErrorText error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered", "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge", "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation", "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorGraphExecUpdateFailure, "cudaErrorGraphExecUpdateFailure",
     "the graph update was not performed because it included changes which violated constraints"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

static const ErrorText *text_of(cudaError_t error)
{
    for (const ErrorText &text : error_texts)
        if (text.error == error)
            return &text;
    return text_of(cudaErrorUnknown);
}

const char *cudaGetErrorString(cudaError_t error) { return text_of(error)->text; }
const char *cudaGetErrorName(cudaError_t error) { return text_of(error)->name; }
cudaError_t cudaPeekAtLastError(void) { return last_error; }

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

/* ---- devices ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = options().devices;
    return no_device();
}

static cudaError_t check_device(int number)
{
    if (cudaError_t error = no_device())
        return error;
    return report(number >= 0 && number < options().devices ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaSetDevice(int number)
{
    cudaError_t error = check_device(number);
    if (!error)
        device = device_of_process = number;
    return error;
}

cudaError_t cudaGetDevice(int *number)
{
    *number = device;
    return no_device();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int number)
{
    if (cudaError_t error = check_device(number))
        return error;
    *p = {};
    snprintf(p->name, sizeof p->name, "emulated device %d", number);
    p->uuid.bytes[0] = (char)(number + 1);
    p->totalGlobalMem = reported_bytes;
    p->sharedMemPerBlock = 48 * 1024;
    p->sharedMemPerBlockOptin = (size_t)options().shared;
    p->sharedMemPerMultiprocessor = 228 * 1024;
    p->regsPerBlock = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = INT32_MAX;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->maxThreadsPerMultiProcessor = 2048;
    p->major = options().major;
    p->multiProcessorCount = 4;
    p->l2CacheSize = 50 << 20;
    p->pciBusID = number + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number)
{
    cudaDeviceProp p;
    if (cudaError_t error = cudaGetDeviceProperties(&p, number))
        return error;
    switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *value = (int)p.sharedMemPerMultiprocessor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)p.sharedMemPerBlockOptin; break;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int number)
{
    if (cudaError_t error = check_device(number))
        return error;
    return report(snprintf(id, (size_t)size, "0000:%02x:00.0", number + 1) < size ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (cudaError_t error = no_device())
        return error;
    if (capturing())
        return report(cudaErrorStreamCaptureUnsupported);
    synchronize_all();
    check_canaries("in cudaDeviceSynchronize");
    return cudaSuccess;
}

cudaError_t cudaDeviceReset(void) { return cudaDeviceSynchronize(); }
cudaError_t cudaSetDeviceFlags(unsigned) { return no_device(); }

cudaError_t cudaDeviceCanAccessPeer(int *can, int number, int peer)
{
    *can = number != peer;
    cudaError_t error = check_device(number);
    return error ? error : check_device(peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) { return check_device(peer); }

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return no_device();
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = options().devices > 0 ? CUDART_VERSION : 0;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* ---- allocation ---- */

cudaError_t cudaMalloc(void **memory, size_t size)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    if (capturing())
        return report(cudaErrorStreamCaptureUnsupported);
    *memory = nullptr;
    if (size == 0)
        return cudaSuccess;
    if (size > reported_bytes)
        return report(cudaErrorMemoryAllocation);
    if (!arena.begin)
        open_arena();
    DeviceAccess access;
    char *taken = take_memory(padded(size));
    if (!taken)
        return report(cudaErrorMemoryAllocation);
    poison(taken, size);
    memset(taken + size, nan_byte, canary_bytes);
    device_memory[taken] = {size, device};
    *memory = taken;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    if (!memory)
        return cudaSuccess;
    if (capturing())
        return report(cudaErrorStreamCaptureUnsupported);
    auto found = device_memory.find((const char *)memory);
    if (found == device_memory.end())
        return report(cudaErrorInvalidValue);
    synchronize_all();
    check_registered(memory, found->second.size);
    DeviceAccess access;
    check_canary(*found, "in cudaFree");
    poison(memory, found->second.size);
    arena.unused.insert({padded(found->second.size), (char *)memory});
    device_memory.erase(found);
    return cudaSuccess;
}

cudaError_t cudaMallocAsync(void **memory, size_t size, cudaStream_t) { return cudaMalloc(memory, size); }
cudaError_t cudaFreeAsync(void *memory, cudaStream_t) { return cudaFree(memory); }

cudaError_t cudaMallocHost(void **memory, size_t size)
{
    Guard guard;
    if (cudaError_t error = no_device())
        return error;
    *memory = nullptr;
    if (size == 0)
        return cudaSuccess;
    if (posix_memalign(memory, page, size))
        return report(cudaErrorMemoryAllocation);
    poison(*memory, size);
    pinned_memory[(const char *)*memory] = {size, device};
    return cudaSuccess;
}

cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned) { return cudaMallocHost(memory, size); }

cudaError_t cudaFreeHost(void *memory)
{
    Guard guard;
    if (!memory)
        return cudaSuccess;
    synchronize_all();
    if (!pinned_memory.erase((const char *)memory))
        return report(cudaErrorInvalidValue);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t size, unsigned)
{
    if (cudaError_t error = no_device())
        return error;
    if (!memory || size == 0)
        return report(cudaErrorInvalidValue);
    if (range_of(pinned_memory, memory))
        return report(cudaErrorHostMemoryAlreadyRegistered);
    pinned_memory[(const char *)memory] = {size, device};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    return report(pinned_memory.erase((const char *)memory) ? cudaSuccess : cudaErrorHostMemoryNotRegistered);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    size_t used = 0;
    for (const auto &range : device_memory)
        used += range.second.device == device ? padded(range.second.size) : 0;
    *total = reported_bytes;
    *free = used < reported_bytes ? reported_bytes - used : 0;
    return no_device();
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *memory)
{
    Guard guard;
    const Ranges::value_type *range = range_of(device_memory, memory), *pinned = range_of(pinned_memory, memory);
    *attributes = {cudaMemoryTypeUnregistered, -1, nullptr, (void *)memory};
    if (range)
        *attributes = {cudaMemoryTypeDevice, range->second.device, (void *)memory, nullptr};
    else if (pinned)
        *attributes = {cudaMemoryTypeHost, pinned->second.device, (void *)memory, (void *)memory};
    return no_device();
}

/* ---- copies ---- */

/* An error unless both ends lie where the direction says. The host's end must not lie on a device. */
static cudaError_t check_copy(const void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    if (cudaError_t error = no_device())
        return error;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return report(cudaErrorInvalidMemcpyDirection);
    bool to_device = ht_emulated_is_device(to, size), from_device = ht_emulated_is_device(from, size);
    bool writes = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool reads = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    bool right = kind == cudaMemcpyDefault || (to_device == writes && from_device == reads);
    return report(size == 0 || right ? cudaSuccess : cudaErrorInvalidValue);
}

static void copy_rows(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
    for (size_t row = 0; row < height; row++)
        memmove((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream)
{
    Guard guard;
    if (width == 0 || height == 0)
        return no_device();
    if (to_pitch < width || from_pitch < width)
        return report(cudaErrorInvalidValue);
    size_t from_size = (height - 1) * from_pitch + width;
    if (cudaError_t error = check_copy(to, from, width, kind))
        return error;
    if (cudaError_t error = check_copy((char *)to + (height - 1) * to_pitch, (const char *)from + from_size - width, width, kind))
        return error;
    if (ht_emulated_is_device(from, 1) || ht_emulated_is_pinned(from, from_size)) {
        ht_emulated_enqueue(
            stream, [=] { copy_rows(to, to_pitch, from, from_pitch, width, height); }, "copy");
        return cudaSuccess;
    }
    if (capturing())
        fail("a copy from host memory that is not pinned is captured into a graph: it would read what lies there when the graph runs");
    std::string staged((const char *)from, from_size);
    ht_emulated_enqueue(
        stream, [=] { copy_rows(to, to_pitch, staged.data(), from_pitch, width, height); }, "copy");
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, cudaMemcpyKind kind, cudaStream_t stream)
{
    return cudaMemcpy2DAsync(to, size, from, size, size, 1, kind, stream);
}

cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind)
{
    if (capturing())
        return report(cudaErrorStreamCaptureImplicit);
    synchronize_default();
    cudaError_t error = cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
    synchronize_default();
    return error;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, cudaMemcpyKind kind)
{
    return cudaMemcpy2D(to, size, from, size, size, 1, kind);
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t size, cudaStream_t stream)
{
    if (cudaError_t error = no_device())
        return error;
    if (size && !ht_emulated_is_device(memory, size) && !ht_emulated_is_pinned(memory, size))
        return report(cudaErrorInvalidValue);
    if (size)
        ht_emulated_enqueue(
            stream, [=] { memset(memory, value, size); }, "copy");
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t size)
{
    if (capturing())
        return report(cudaErrorStreamCaptureImplicit);
    cudaError_t error = cudaMemsetAsync(memory, value, size, nullptr);
    synchronize_default();
    return error;
}
