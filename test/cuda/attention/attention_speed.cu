/* How fast attention is on this GPU, causal and not, in bf16: milliseconds and products of a matrix of scores per second.
 *
 *     attention_speed [SEQUENCE [HEAD [BATCH [HEADS]]]]      4096, 128, 4 and 16 unless given
 *     nvcc -std=c++20 -O3 -arch=native -Iinclude -Iruntime -o attention_speed test/cuda/attention/attention_speed.cu
 * runtime/cuda/attention*.cu
 *
 * A rate counts what must be computed, as others do: 4 s t d operations a head forward and 10 s t d backward, half of it under `causal`.
 */
#include "attention_runtime.h"

#include <vector>

static ht_view bf16_view(const std::vector<int64_t> &extent)
{
    ht_view view = view_of(nullptr, HT_BF16, extent);
    size_t count = (size_t)ht_view_count(&view, 0, view.rank);
    std::vector<__nv_bfloat16> host(count);
    for (size_t i = 0; i < count; i++)
        host[i] = __float2bfloat16((float)(i * 2654435761u % 1024) / 512 - 1);
    HT_CUDA(cudaMalloc(&view.data, count * sizeof(__nv_bfloat16)));
    HT_CUDA(cudaMemcpy(view.data, host.data(), count * sizeof(__nv_bfloat16), cudaMemcpyHostToDevice));
    return view;
}

/* The milliseconds that one call takes, from several in a row. */
static float time_of(ht_kernel *kernel, const ht_call *call)
{
    const int calls = 10;
    cudaEvent_t begin, end;
    float milliseconds;
    HT_CUDA(cudaEventCreate(&begin));
    HT_CUDA(cudaEventCreate(&end));
    kernel(call);
    HT_CUDA(cudaEventRecord(begin, ht_compute_stream()));
    for (int i = 0; i < calls; i++)
        kernel(call);
    HT_CUDA(cudaEventRecord(end, ht_compute_stream()));
    HT_CUDA(cudaEventSynchronize(end));
    HT_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds / calls;
}

int main(int count, char **argument)
{
    auto number = [&](int i, int64_t otherwise) { return count > i ? strtoll(argument[i], nullptr, 10) : otherwise; };
    int64_t s = number(1, 4096), d = number(2, 128), batch = number(3, 4), heads = number(4, 16);
    open_runtime();
    const std::vector<int64_t> shape = {batch, s, heads, d};
    ht_view q = bf16_view(shape), k = bf16_view(shape), v = bf16_view(shape), y = bf16_view(shape), dy = bf16_view(shape);
    ht_view lse = view_of(nullptr, HT_F32, {batch, s, heads}), segments = view_of(nullptr, HT_I32, {batch, s}), absent = view_of(nullptr, HT_F32, {batch, s, heads});
    HT_CUDA(cudaMalloc(&lse.data, (size_t)(batch * s * heads) * sizeof(float)));
    for (int causal = 0; causal < 2; causal++) {
        ht_view in_forward[] = {q, k, v, segments, segments}, to_forward[] = {y, lse}, in_backward[] = {dy, q, k, v, y, lse, segments, segments, absent};
        ht_view to_backward[] = {bf16_view(shape), bf16_view(shape), bf16_view(shape)};
        AttentionCall forward(in_forward, 5, to_forward, 2, causal), backward(in_backward, 9, to_backward, 3, causal);
        float forward_time = time_of(ht_attention_kernel, &forward.call),
              backward_time = time_of(ht_attention_backward_kernel, &backward.call);
        double work = (double)(batch * heads * s * s * d) / (causal ? 2 : 1) * 1e-9;
        printf("s %lld d %lld%s: forward %.3f ms, %.1f TFLOP/s; backward %.3f ms, %.1f TFLOP/s\n", (long long)s, (long long)d,
               causal ? " causal" : "", forward_time, 4 * work / forward_time, backward_time, 10 * work / backward_time);
        for (ht_view &view : to_backward)
            HT_CUDA(cudaFree(view.data));
    }
    return 0;
}
