/* inside.h: what the files of the emulation share. */
#ifndef HETU_EMULATE_INSIDE_H
#define HETU_EMULATE_INSIDE_H

#include <cuda_runtime.h>

#include <string>

namespace emulate {

/* What the environment asks for; read once. */
struct Options {
    int devices, shared, major; // shared: bytes of a block; major: of the compute capability
    bool late, backward, poison, protect, traffic;
    double pace; // milliseconds that a kernel takes at least
};
const Options &options();

/* Ends the program with a message on standard error. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What the device answers to every call: cudaErrorNoDevice where there is none, the fault that HETU_EMULATE_FAULT asks for once it is
 * there, else cudaSuccess. */
cudaError_t standing_error();

/* Notes that a kernel runs. */
void count_kernel();

/* Remembers an error for cudaGetLastError and returns it. */
cudaError_t report(cudaError_t error);

/* While one of these lives, no other thread is at work here. pause() lets others go on for a while. */
struct Guard {
    Guard();
    ~Guard();
    static void pause();
};

/* Device memory can be touched while one of these lives (HETU_EMULATE_PROTECT). */
struct DeviceAccess {
    DeviceAccess();
    ~DeviceAccess();
};

/* Device memory that is in use, whole pages; how many bytes. */
char *device_range(size_t *size);

/* Around a launch: "READ WRITTEN" bytes of device memory, where HETU_EMULATE_TRAFFIC=1 asks for it; else "". */
void traffic_begin();
std::string traffic_end();

/* Fills new memory with NaN where that is asked for. */
void poison(void *memory, size_t size);

/* Whether a word among a launch's arguments is an address of memory that a device cannot read. */
bool is_host_address(uint64_t word);

/* Ends the program unless the canary behind every allocation of device memory is whole. */
void check_canaries(const char *when);

/* Ends the program when a graph has registered memory in [memory, memory + size). */
void check_registered(const void *memory, size_t size);

/* Whether a stream is captured, so that calls that wait or allocate are errors. */
bool capturing();

/* Runs all that blocking streams hold, as the default stream's calls do. */
void synchronize_default();

/* Runs all that every stream holds. */
void synchronize_all();

int current_device();

/* From here on a launch runs whose blocks have so much shared memory. */
void begin_shared(const ht_emulated_shared_limit &limit);

/* Ends the program where a GPU would refuse a launch that asks for dynamic shared memory beside `fixed` bytes of __shared__ variables. */
void check_shared(const ht_emulated_shared_limit &limit, size_t fixed);

/* Counts the blocks that ever ran. */
uint64_t block_number();

} // namespace emulate

#endif
