/* How fast the kernels are: the memory-bound ones against a copy on the device, products against cuBLASLt's product of 8192 x 8192
 * matrices.
 *
 *     speed [SHRINK]     sizes are divided by SHRINK, so that a machine without a GPU can see that it runs
 *
 * A kernel's bytes are what it must read and write once. The time is the median of several runs over operands far larger than the L2 cache,
 * filled with random numbers.
 */
#include "host.h"

#include "operators/kernels.h"
#include "cuda/product.h"

#include <hetu/rt.h>

#include <algorithm>
#include <functional>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

enum { WARM = 2, RUNS = 9, SQUARE = 8192 };

static int64_t shrink = 1;
static double copy_rate, product_rate; // bytes and operations a second

/* ---- operands ---- */

/* Numbers in [-1, 1), or whole ones below `below`. */
template <typename T> __global__ void fill_device(T *to, int64_t count, int64_t below)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads()) {
        uint64_t bits = (uint64_t)i * 0x9e3779b97f4a7c15u;
        bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
        const float number = (float)(bits >> 40) * 0x1p-23f - 1;
        to[i] = below ? (T)((int64_t)(bits >> 20) % below) : (T)(sizeof(T) == 2 ? ht_bf16_store(number) : number);
    }
}

static std::vector<void *> allocated;

static ht_view view(ht_dtype dtype, std::vector<int64_t> extent, int64_t below = 0)
{
    ht_view v = {};
    v.dtype = dtype;
    v.rank = (int)extent.size();
    for (size_t d = 0; d < extent.size(); d++)
        v.extent[d] = v.global[d] = extent[d];
    const int64_t count = ht_view_count(&v, 0, v.rank), bytes = count * (dtype == HT_BF16 ? 2 : dtype == HT_I64 ? 8 : 4);
    v.data = host_alloc(bytes, 0);
    allocated.push_back(v.data);
    if (dtype == HT_BF16)
        ht_launch(fill_device<uint16_t>, ht_blocks(count, 256), 256, 0, (uint16_t *)v.data, count, below);
    else if (dtype == HT_I32)
        ht_launch(fill_device<int32_t>, ht_blocks(count, 256), 256, 0, (int32_t *)v.data, count, below);
    else
        ht_launch(fill_device<float>, ht_blocks(count, 256), 256, 0, (float *)v.data, count, below);
    return v;
}

static ht_view none(void) { return {}; }

static void forget(void)
{
    host_wait();
    for (void *memory : allocated)
        host_free(memory, 0);
    allocated.clear();
}

/* ---- time ---- */

/* Seconds that `work` takes on the device: the median of several runs. */
static double seconds(const std::function<void()> &work)
{
    std::vector<float> times;
    cudaEvent_t begin, end;
    HT_CUDA(cudaEventCreate(&begin));
    HT_CUDA(cudaEventCreate(&end));
    for (int run = 0; run < WARM + RUNS; run++) {
        HT_CUDA(cudaEventRecord(begin, ht_compute_stream()));
        work();
        HT_CUDA(cudaEventRecord(end, ht_compute_stream()));
        host_wait();
        float milliseconds = 0;
        HT_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
        if (run >= WARM)
            times.push_back(milliseconds);
    }
    HT_CUDA(cudaEventDestroy(begin));
    HT_CUDA(cudaEventDestroy(end));
    std::sort(times.begin(), times.end());
    return std::max((double)times[RUNS / 2], 1e-6) / 1e3;
}

static double bytes_of(const std::vector<ht_view> &views)
{
    double bytes = 0;
    for (const ht_view &v : views)
        if (v.data)
            bytes += (double)ht_view_count(&v, 0, v.rank) * (v.dtype == HT_BF16 ? 2 : v.dtype == HT_I64 ? 8 : 4);
    return bytes;
}

/* A line of the table for a memory-bound kernel; `bytes` 0: its operands and results, each once. */
static void row(const char *name, ht_kernel *kernel, std::vector<ht_view> results, std::vector<ht_view> operands,
                std::vector<ht_attr> attrs, double bytes = 0)
{
    const float hyper[8] = {1e-3f, 0.9f, 0.999f, 1e-8f, 0.1f, 1.0f};
    ht_call call = {};
    call.hyper = host_step(hyper, 3, 5, 1);
    call.result = results.data();
    call.operand = operands.data();
    call.result_count = (int)results.size();
    call.operand_count = (int)operands.size();
    call.attr = attrs.data();
    bytes = bytes > 0 ? bytes : bytes_of(results) + bytes_of(operands);
    const double rate = bytes / seconds([&] { kernel(&call); });
    printf("%-44s %9.1f GB/s  %5.2f of a copy\n", name, rate / 1e9, rate / copy_rate);
    if (const char *fault = host_fault())
        printf("%s: %s\n", name, fault);
    forget();
}

/* ---- memory-bound kernels ---- */

static void copy(void)
{
    const int64_t count = (1 << 28) / shrink;
    const ht_view to = view(HT_F32, {count}), from = view(HT_F32, {count});
    const size_t bytes = (size_t)count * sizeof(float);
    copy_rate = 2 * (double)bytes /
                seconds([&] { HT_CUDA(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, ht_compute_stream())); });
    printf("%-44s %9.1f GB/s\n", "copy on the device", copy_rate / 1e9);
    forget();
}

static void norms(ht_dtype t, const char *type, int64_t n)
{
    const int64_t r = std::max((int64_t)(1 << 27) / n / shrink, (int64_t)1);
    char name[80];
#define NAME(what) (snprintf(name, sizeof name, "%s %s, %ld columns", what, type, (long)n), name)
    row(NAME("layer_norm"), ht_layer_norm_kernel, {view(t, {r, n}), view(HT_F32, {r}), view(HT_F32, {r})},
        {view(t, {r, n}), view(HT_F32, {n}), view(HT_F32, {n})}, {real_attr(1e-5)});
    row(NAME("layer_norm_backward"), ht_layer_norm_backward_kernel, {view(t, {r, n}), view(HT_F32, {n}), view(HT_F32, {n})},
        {view(t, {r, n}), view(t, {r, n}), view(HT_F32, {r}), view(HT_F32, {r}), view(HT_F32, {n}), {}}, {});
    row(NAME("rms_norm"), ht_rms_norm_kernel, {view(t, {r, n}), view(HT_F32, {r})}, {view(t, {r, n}), view(HT_F32, {n})},
        {real_attr(1e-5)});
    row(NAME("rms_norm_backward"), ht_rms_norm_backward_kernel, {view(t, {r, n}), view(HT_F32, {n})},
        {view(t, {r, n}), view(t, {r, n}), view(HT_F32, {r}), view(HT_F32, {n}), {}}, {});
    row(NAME("softmax"), ht_softmax_kernel, {view(t, {r, n})}, {view(t, {r, n})}, {});
    row(NAME("softmax_backward"), ht_softmax_backward_kernel, {view(t, {r, n})}, {view(t, {r, n}), view(t, {r, n})}, {});
#undef NAME
}

static void entropy(ht_dtype t, const char *type, int64_t n)
{
    const int64_t r = std::max((int64_t)8192 / shrink, (int64_t)1);
    char name[80];
#define NAME(what) (snprintf(name, sizeof name, "%s %s, %ld classes", what, type, (long)n), name)
    row(NAME("row_max"), ht_row_max_kernel, {view(HT_F32, {r})}, {view(t, {r, n})}, {});
    row(NAME("mass"), ht_mass_kernel, {view(HT_F32, {r}), view(HT_F32, {r})}, {view(t, {r, n}), view(HT_I32, {r}, n), view(HT_F32, {r})},
        {});
    row(NAME("mass_backward"), ht_mass_backward_kernel, {view(t, {r, n})},
        {view(HT_F32, {r}), view(HT_F32, {r}), view(t, {r, n}), view(HT_I32, {r}, n), view(HT_F32, {r})}, {});
#undef NAME
}

static void others(ht_dtype t, const char *type)
{
    const int64_t tokens = std::max((int64_t)65536 / shrink, (int64_t)1), v = 50257, n = 768, size = t == HT_BF16 ? 2 : 4;
    char name[80];
#define NAME(what) (snprintf(name, sizeof name, "%s %s", what, type), name)
    row(NAME("embedding"), ht_embedding_kernel, {view(t, {tokens, n})}, {view(t, {v, n}), view(HT_I32, {tokens}, v)}, {},
        2.0 * (double)(tokens * n * size));
    row(NAME("embedding_backward"), ht_embedding_backward_kernel, {view(HT_F32, {v, n})}, {view(t, {tokens, n}), view(HT_I32, {tokens}, v), none()},
        {integer_attr(v)});
    row(NAME("embedding_backward, one token"), ht_embedding_backward_kernel, {view(HT_F32, {v, n})},
        {view(t, {tokens, n}), view(HT_I32, {tokens}, 1), none()}, {integer_attr(v)});
    row(NAME("rope, 16 heads of 128"), ht_rope_kernel, {view(t, {1, tokens, 16, 128})}, {view(t, {1, tokens, 16, 128}), none()},
        {real_attr(10000), integer_attr(1)});
    row(NAME("dropout"), ht_dropout_kernel, {view(t, {tokens, 1024})}, {view(t, {tokens, 1024})}, {real_attr(0.1), integer_attr(3)});
    const int64_t sliced = 2 * (int64_t)(tokens * 1024 * size);
    row(NAME("slice"), ht_slice_kernel, {view(t, {tokens, 1024})}, {view(t, {tokens, 3072})},
        {integer_attr(1), integer_attr(1024), integer_attr(1024)}, (double)sliced);
    row(NAME("concat"), ht_concat_kernel, {view(t, {tokens, 2048})}, {view(t, {tokens, 1024}), view(t, {tokens, 1024})}, {integer_attr(1)});
#undef NAME
}

static void updates(void)
{
    const int64_t n = (1 << 27) / shrink;
    const ht_view p = view(HT_F32, {n}), g = view(HT_F32, {n}), m = view(HT_F32, {n}), v = view(HT_F32, {n}, 2);
    row("adamw", ht_adamw_kernel, {p, m, v}, {p, g, m, v, none()}, {integer_attr(1), integer_attr(0)});
    const ht_view p2 = view(HT_F32, {n}), g2 = view(HT_F32, {n}), m2 = view(HT_F32, {n});
    row("sgd", ht_sgd_kernel, {p2, m2}, {p2, g2, m2, none()}, {integer_attr(1), integer_attr(0)});
}

/* ---- products ---- */

/* cuBLASLt alone: what products are compared with. */
static void square(ht_dtype t)
{
    const int64_t n = std::max(SQUARE / shrink, (int64_t)1);
    const ht_view a = view(t, {n, n}), b = view(t, {n, n}), d = view(t, {n, n});
    const Matrix matrix = {t, CUBLAS_OP_N, n, n, n, 0};
    const Matmul m = {matrix, matrix, matrix, 1, false, HT_NO_EPILOGUE, false, 0};
    void *workspace = cuda_scratch(MATMUL_WORKSPACE);
    product_rate = 2 * (double)n * (double)n * (double)n / seconds([&] {
                       matmul_run(m, {a.data, b.data, d.data, NULL, NULL}, 1, 0, workspace);
                   });
    printf("%-44s %9.1f TFLOP/s\n", t == HT_BF16 ? "cuBLASLt bf16, 8192 x 8192 x 8192" : "cuBLASLt f32, 8192 x 8192 x 8192",
           product_rate / 1e12);
    forget();
}

/* y[b, o] = x[b, i] * w[o, i] + bias[o], and its gradients with respect to w and bias (in f32) and x. */
static void linear(ht_dtype t, const char *what, int64_t b, int64_t i, int64_t o, ht_epilogue epilogue)
{
    b = std::max(b / shrink, (int64_t)1);
    i = std::max(i / shrink, (int64_t)1);
    o = std::max(o / shrink, (int64_t)1);
    const ht_view x = view(t, {b, i}), w = view(t, {o, i}), bias = view(t, {o}), y = view(t, {b, o}), aux = view(t, {b, o});
    const ht_view dw = view(HT_F32, {o, i}), dbias = view(HT_F32, {o}), dx = view(t, {b, i});
    const double operations = 2 * (double)b * (double)i * (double)o;
    const auto line = [&](const char *name, const ht_product_call &call) {
        const double rate = operations / seconds([&] { ht_product(&call); });
        printf("%-10s %-33s %9.1f TFLOP/s %4.2f of cuBLASLt\n", name, what, rate / 1e12, rate / product_rate);
    };
    const ht_axis forward[] = {{b, o, i, 0, 0}, {o, 1, 0, i, 1}, {i, 0, 1, 1, 0}};
    line("forward", {y.data, t, x.data, w.data, t, bias.data, t, NULL, 0, 1, epilogue, epilogue == HT_GELU ? aux.data : NULL, 3, forward});
    const ht_axis to_w[] = {{b, 0, o, i, 0}, {o, i, 1, 0, 1}, {i, 1, 0, 1, 0}};
    line("to w", {dw.data, HT_F32, y.data, x.data, t, NULL, t, static_cast<float *>(dbias.data), 0, 1, HT_NO_EPILOGUE, NULL, 3, to_w});
    const ht_axis to_x[] = {{b, i, o, 0, 0}, {o, 0, 1, i, 0}, {i, 1, 0, 1, 0}};
    line("to x", {dx.data, t, y.data, w.data, t, NULL, t, NULL, 0, 1, HT_NO_EPILOGUE, NULL, 3, to_x});
    forget();
}

int main(int argc, char **argv)
{
    shrink = argc > 1 ? std::max(atol(argv[1]), 1l) : 1;
    if (!host_open())
        return 1;
    copy();
    for (int64_t n : {768, 2048, 4096}) {
        norms(HT_BF16, "bf16", n);
        norms(HT_F32, "f32", n);
    }
    for (int64_t n : {50257, 32000}) {
        entropy(HT_BF16, "bf16", n);
        entropy(HT_F32, "f32", n);
    }
    others(HT_BF16, "bf16");
    others(HT_F32, "f32");
    updates();
    square(HT_BF16);
    linear(HT_BF16, "bf16, 8192 x 8192 x 8192", SQUARE, SQUARE, SQUARE, HT_NO_EPILOGUE);
    linear(HT_BF16, "bf16, GPT-2: 768 to 3072, gelu, aux", 16384, 768, 3072, HT_GELU);
    linear(HT_BF16, "bf16, GPT-2: 768 to 50257", 16384, 768, 50257, HT_NO_EPILOGUE);
    linear(HT_BF16, "bf16, GPT-2: 768 to 50304", 16384, 768, 50304, HT_NO_EPILOGUE);
    linear(HT_BF16, "bf16, llama: 2048 to 5504", 8192, 2048, 5504, HT_NO_EPILOGUE);
    square(HT_F32);
    linear(HT_F32, "f32, GPT-2: 768 to 3072", 16384, 768, 3072, HT_NO_EPILOGUE);
    return 0;
}
