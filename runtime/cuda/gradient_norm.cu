/* Sums of squares, for the global gradient norm. Consecutive calls, each of which adds to the
 * previous result, are collected and share one launch. */
#include "cuda/multi_tensor.h"

#include <vector>

/* The tensor of one call. */
typedef struct Squared {
    const float *g;
    /* Elements; index of the first chunk, counted over all tensors; 1: address 16-byte aligned. */
    int64_t count, chunk, vector;
} Squared;

static std::vector<Squared> collected;
static float *collected_sum;        // address of the result
static const float *collected_more; // address of a number to add; nullptr: no number
static int64_t collected_chunks;

/* Computes the sum of the squares of all tensors, plus *more unless `more` is NULL. Each block
 * takes every gridDim.y-th chunk, so the sum has a fixed order. */
__global__ void __launch_bounds__(COLLECT_THREADS)
    square_sum_device(float *sum, const float *more, const Squared *tensors, int64_t count,
                      int64_t chunks) {
    constexpr int N = 4;
    double mine = 0;
    for (int64_t chunk = blockIdx.y; chunk < chunks; chunk += gridDim.y) {
        const Squared t = chunk_owner(tensors, count, chunk);
        const int64_t first = (chunk - t.chunk) * COLLECT_CHUNK,
                      end = first + COLLECT_CHUNK < t.count ? first + COLLECT_CHUNK : t.count;
        const int64_t vectors = t.vector ? first + (end - first) / N * N : first;
        for (int64_t i = first + (int64_t)threadIdx.x * N; i < vectors; i += COLLECT_THREADS * N) {
            float g[N];
            ht_load(g, t.g + i);
            for (int e = 0; e < N; e++) mine += g[e] * g[e];
        }
        for (int64_t i = vectors + threadIdx.x; i < end; i += COLLECT_THREADS)
            mine += t.g[i] * t.g[i];
    }
    if (ht_block_sum(mine)) *sum = (float)(mine + (more ? *more : 0));
}

static void launch(void) {
    std::vector<Squared> tensors;
    tensors.swap(collected);
    const int64_t count = (int64_t)tensors.size(), chunks = collected_chunks;
    collected_chunks = 0;
    ht_launch(square_sum_device, dim3(1, collect_blocks(chunks)), COLLECT_THREADS, 0, collected_sum,
              collected_more,
              static_cast<const Squared *>(
                  cuda_constant(tensors.data(), count * (int64_t)sizeof(Squared))),
              count, chunks);
}

/* Computes result = sum(g[i]^2) + more. Operands: g; more, a scalar that may be absent. */
void ht_square_sum_kernel(const ht_call *call) {
    const float *g = view_f32(&call->operand[0], "square_sum"),
                *more = view_f32(&call->operand[1], "square_sum");
    float *sum = view_f32(&call->result[0], "square_sum");
    if (!collected.empty() && (sum != collected_sum || more != sum)) cuda_collected_launch();
    collect_for(launch);
    if (collected.empty()) {
        collected_more = more;
        collected_sum = sum;
    }
    const int64_t count = view_size(&call->operand[0]);
    collected.push_back({g, count, collected_chunks, aligned_to(16, {g})});
    collected_chunks += collect_chunks(count);
}
