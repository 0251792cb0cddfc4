/* Marks in the work of this GPU, for observers (session/observe/hooks.h), and NVTX names.
 *
 * After device_look, calls are issued one by one in order. The compute stream waits for exchanges,
 * calls are not joined, and nothing is recorded. So each call lies between two marks. */
#include "device/device.h"
#include "cuda/streams.h"

#include <vector>

#ifdef HETU_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

static struct {
    std::vector<cudaEvent_t> events;
    size_t used;
    bool looking, named;
} marks;

bool cuda_looked_at(void) { return marks.looking; }

void cuda_marks_close(void) {
    device_name(NULL);
    for (cudaEvent_t event : marks.events) HT_CUDA(cudaEventDestroy(event));
    marks = {};
}

extern "C" void device_look(void) { marks.looking = true; }

extern "C" int device_mark(void) {
    cudaStream_t stream = ht_compute_stream();
    if (marks.used == marks.events.size()) {
        cudaEvent_t event;
        HT_CUDA(cudaEventCreate(&event));
        marks.events.push_back(event);
    }
    HT_CUDA(cudaEventRecord(marks.events[marks.used], stream));
    return (int)marks.used++;
}

extern "C" double device_marked(int mark) {
    float milliseconds = 0;
    HT_CUDA(cudaEventElapsedTime(&milliseconds, marks.events[0], marks.events[(size_t)mark]));
    return 1e-3 * milliseconds;
}

extern "C" void device_marks_clear(void) { marks.used = 0; }

extern "C" bool device_name(const char *name) {
#ifdef HETU_NVTX
    if (marks.named) nvtxRangePop();
    if (name) nvtxRangePushA(name);
    marks.named = name != NULL;
    return true;
#else
    (void)name;
    return false;
#endif
}

/* ---- the measured rate of copies (rates of products depend on type and shape) ---- */

enum {
    RATED_BYTES = 1 << 26, // bytes of the measured copy
    RATED_TIMES = 4        // measured copies; the shortest time counts
};

/* Returns the shortest time, in seconds, of the work that `issue` puts on the stream. */
template <typename Issue> static double least_seconds(Issue issue) {
    double least = 0;
    for (int i = 0; i < RATED_TIMES; i++) {
        device_marks_clear();
        device_mark();
        issue();
        const int end = device_mark();
        device_wait();
        const double took = device_marked(end);
        least = i && least < took ? least : took;
    }
    device_marks_clear();
    return least;
}

extern "C" DeviceRates device_rates(void) {
    char *memory = (char *)device_alloc(2 * (int64_t)RATED_BYTES);
    const double copy = least_seconds([=] {
        HT_CUDA(cudaMemcpyAsync(memory + RATED_BYTES, memory, RATED_BYTES, cudaMemcpyDeviceToDevice,
                                ht_compute_stream()));
    });
    device_free(memory);
    return {0, copy > 0 ? 2 * (double)RATED_BYTES / copy : 0};
}
