/* CUDA operations for the threads of async exchanges (ChannelMemory in exchange/channel.h): local
 * moves, and copies between host and device. Each thread has its own stream. */
#include "cuda/channels.h"
#include "cuda/streams.h"
#include "device/device.h"
#include "transport/post.h"

static struct {
    int device;
    cudaStream_t stream[LANES];
} lanes;

/* Records the main thread's GPU, which lane_attach selects in the threads of lanes. */
static void lanes_prepare(void) { HT_CUDA(cudaGetDevice(&lanes.device)); }

static void lane_attach(int lane) {
    HT_CUDA(cudaSetDevice(lanes.device));
    HT_CUDA(cudaStreamCreateWithFlags(&lanes.stream[lane], cudaStreamNonBlocking));
}

static void lane_detach(int lane) { HT_CUDA(cudaStreamDestroy(lanes.stream[lane])); }

static void *lane_mark(void) {
    cudaEvent_t event;
    HT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    HT_CUDA(cudaEventRecord(event, ht_compute_stream()));
    return event;
}

/* Returns whether a query reports that all work is done. Clears the error "not ready". */
static bool is_done(cudaError_t state) {
    if (state == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return false;
    }
    HT_CUDA(state);
    return true;
}

static bool lane_passed(void *mark) {
    if (!is_done(cudaEventQuery((cudaEvent_t)mark))) return false;
    HT_CUDA(cudaEventDestroy((cudaEvent_t)mark));
    return true;
}

static void lane_move(int lane, const ChannelRun *run, const ht_reshard_step *step) {
    cuda_move(run, step, lanes.stream[lane]);
}

static void lane_copy(int lane, void *to, const void *from, int64_t bytes, bool up) {
    if (bytes)
        HT_CUDA(cudaMemcpyAsync(to, from, (size_t)bytes,
                                up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                                lanes.stream[lane]));
}

static bool lane_idle(int lane) { return is_done(cudaStreamQuery(lanes.stream[lane])); }

extern "C" const ChannelMemory cuda_lane_memory = {
    lanes_prepare, lane_attach, lane_detach, lane_mark,         lane_passed,
    lane_move,     lane_copy,   lane_idle,   device_alloc_host, device_free_host};
