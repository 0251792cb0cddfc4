/* Converts f32 to bf16. Consecutive calls, as for the parameters of a model, share one launch. */
#include "cuda/multi_tensor.h"

#include <hetu/rt.h>

#include <vector>

/* One call of ht_narrow. */
typedef struct Narrowed {
    uint16_t *to;
    const float *from;
    /* Number of elements; number of the first chunk; whether addresses are 16-byte aligned. */
    int64_t count, chunk, vector;
} Narrowed;

static std::vector<Narrowed> collected;
static int64_t collected_chunks;

__global__ void __launch_bounds__(COLLECT_THREADS)
    narrow_device(const Narrowed *calls, int64_t count, int64_t chunks) {
    constexpr int N = 8;
    for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
        const Narrowed c = chunk_owner(calls, count, chunk);
        const int64_t first = (chunk - c.chunk) * COLLECT_CHUNK,
                      end = first + COLLECT_CHUNK < c.count ? first + COLLECT_CHUNK : c.count;
        const int64_t vectors = c.vector ? first + (end - first) / N * N : first;
        for (int64_t i = first + (int64_t)threadIdx.x * N; i < vectors; i += COLLECT_THREADS * N) {
            float x[N];
            ht_load(x, c.from + i);
            ht_store(c.to + i, x);
        }
        for (int64_t i = vectors + threadIdx.x; i < end; i += COLLECT_THREADS)
            c.to[i] = ht_bf16_store(c.from[i]);
    }
}

static void launch(void) {
    std::vector<Narrowed> calls;
    calls.swap(collected);
    const int64_t count = (int64_t)calls.size(), chunks = collected_chunks;
    collected_chunks = 0;
    ht_launch(narrow_device, collect_blocks(chunks), COLLECT_THREADS, 0,
              static_cast<const Narrowed *>(
                  cuda_constant(calls.data(), count * (int64_t)sizeof(Narrowed))),
              count, chunks);
}

void ht_narrow(void *to, const void *from, int64_t count) {
    if (count == 0) return;
    collect_for(launch);
    collected.push_back({static_cast<uint16_t *>(to), static_cast<const float *>(from), count,
                         collected_chunks, aligned_to(16, {to, from})});
    collected_chunks += collect_chunks(count);
}
