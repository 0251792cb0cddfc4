/* Creates the compute, exchange and side streams, and their waits; decides which exchange runs on
 * which (streams.h). */
#include "cuda/streams.h"

#include "cuda/multi_tensor.h"

#include "transport/world.h"

#include <map>
#include <sched.h>
#include <utility>
#include <vector>

enum { CHECK_EVERY = 4096 }; // queries of a stream between two checks of the other ranks

static struct {
    cudaStream_t compute, exchange;
    cudaEvent_t computed, exchanged;
    bool pending; // the compute stream must still wait for the exchange stream's work
    FailNote *note;
    /* Device memory of each note, by the note's texts. */
    std::map<std::pair<const char *, const char *>, FailNote *> notes;
} streams;

void cuda_streams_open(void) {
    int least, greatest;
    HT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HT_CUDA(cudaStreamCreateWithFlags(&streams.compute, cudaStreamNonBlocking));
    HT_CUDA(cudaStreamCreateWithPriority(&streams.exchange, cudaStreamNonBlocking, greatest));
    HT_CUDA(cudaEventCreateWithFlags(&streams.computed, cudaEventDisableTiming));
    HT_CUDA(cudaEventCreateWithFlags(&streams.exchanged, cudaEventDisableTiming));
    HT_CUDA(cudaHostAlloc((void **)&streams.note, sizeof *streams.note, cudaHostAllocMapped));
    *streams.note = {};
}

void cuda_streams_close(void) {
    for (const auto &known : streams.notes) HT_CUDA(cudaFree(known.second));
    HT_CUDA(cudaFreeHost(streams.note));
    HT_CUDA(cudaEventDestroy(streams.exchanged));
    HT_CUDA(cudaEventDestroy(streams.computed));
    HT_CUDA(cudaStreamDestroy(streams.exchange));
    HT_CUDA(cudaStreamDestroy(streams.compute));
    streams = {};
}

extern "C" cudaStream_t ht_compute_stream(void) {
    cuda_collected_launch();
    if (streams.pending) {
        streams.pending = false;
        HT_CUDA(cudaStreamWaitEvent(streams.compute, streams.exchanged, 0));
    }
    return streams.compute;
}

cudaStream_t cuda_exchange_stream(void) { return streams.exchange; }

void cuda_exchange_begin(void) {
    cuda_collected_launch();
    HT_CUDA(cudaEventRecord(streams.computed, streams.compute));
    HT_CUDA(cudaStreamWaitEvent(streams.exchange, streams.computed, 0));
}

void cuda_exchange_end(void) {
    HT_CUDA(cudaEventRecord(streams.exchanged, streams.exchange));
    streams.pending = true;
}

/* ---- side streams ---- */

static std::vector<SideStream> side_streams;

const ht_reshard *side_stream_owner(const ht_reshard *plan, ht_queue queue) {
    static const ht_reshard all[HT_QUEUES] = {};
    return queue == HT_QUEUE_STAGES ? plan : &all[queue];
}

const SideStream *side_stream_find(const ht_reshard *owner) {
    for (const SideStream &side : side_streams)
        if (side.owner == owner) return &side;
    return NULL;
}

void side_stream_add(const ht_reshard *owner) {
    int least, greatest;
    SideStream side = {owner, NULL};
    if (side_stream_find(owner)) return;
    HT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    HT_CUDA(cudaStreamCreateWithPriority(&side.stream, cudaStreamNonBlocking, greatest));
    side_streams.push_back(side);
}

void side_streams_close(void) {
    for (const SideStream &side : side_streams) HT_CUDA(cudaStreamDestroy(side.stream));
    side_streams.clear();
}

/* ---- waits and notes ---- */

/* Ends the program if the channel reports that an exchange has failed. */
static void check_ranks(void) {
    const Channel *channel = channel_of_device();
    if (channel && channel->check) channel->check();
}

/* Waits for a stream, and meanwhile checks the other ranks. */
static void wait_watching(cudaStream_t stream) {
    cudaError_t state = cudaErrorNotReady;
    for (int looks = 1; (state = cudaStreamQuery(stream)) == cudaErrorNotReady; looks++) {
        /* Clears the error "not ready", which the next launch would report. */
        (void)cudaGetLastError();
        if (looks % CHECK_EVERY == 0) {
            check_ranks();
            world_check();
        }
        sched_yield();
    }
    HT_CUDA(state);
    check_ranks();
}

void cuda_streams_wait(void) {
    cudaStream_t stream = ht_compute_stream();
    if (world_size() > 1) wait_watching(stream);
    else HT_CUDA(cudaStreamSynchronize(stream));
}

/* Returns the device memory of a note. New notes are created in a program's first step, which is
 * not captured, and do not wait for the streams. */
static const FailNote *note_of(const char *what, const char *where) {
    const FailNote note = {what, where};
    FailNote *&known = streams.notes[{what, where}];
    if (!known) {
        HT_CUDA(cudaMalloc((void **)&known, sizeof note));
        HT_CUDA(cudaMemcpy(known, &note, sizeof note, cudaMemcpyHostToDevice));
        HT_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
    }
    return known;
}

void cuda_note(cudaStream_t stream, const char *what, const char *where) {
    HT_CUDA(cudaMemcpyAsync(streams.note, note_of(what, where), sizeof *streams.note,
                            cudaMemcpyDeviceToHost, stream));
}

const volatile FailNote *cuda_noted(void) { return streams.note; }
