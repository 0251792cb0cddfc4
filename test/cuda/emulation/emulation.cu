/* The emulation of CUDA: barriers, shuffles, shared memory, tensor cores, streams, graphs, checks, cuBLASLt. */
#include <cublasLt.h>
#include <hetu/cuda.h>

#include "cuda/tensor_core.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
extern "C" {
#include <cmocka.h>
}

static cudaStream_t stream, second;
static const bool late = getenv("HETU_EMULATE_ORDER") && !strcmp(getenv("HETU_EMULATE_ORDER"), "late");

cudaStream_t ht_compute_stream(void) { return stream; }

void ht_cuda_check(cudaError_t code, const char *call, const char *file, int line)
{
    if (code) {
        fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(code));
        abort();
    }
}

template <typename T> struct Device {
    T *data;
    size_t count;
    explicit Device(const std::vector<T> &from) : count(from.size())
    {
        HT_CUDA(cudaMalloc(&data, count * sizeof(T)));
        HT_CUDA(cudaMemcpy(data, from.data(), count * sizeof(T), cudaMemcpyHostToDevice));
    }
    explicit Device(size_t n) : Device(std::vector<T>(n)) {}
    ~Device() { HT_CUDA(cudaFree(data)); }
    std::vector<T> get() const
    {
        std::vector<T> to(count);
        HT_CUDA(cudaStreamSynchronize(stream));
        HT_CUDA(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
        return to;
    }
};

/* Whether a child process that runs `work` dies. */
template <typename Work> static bool dies(Work work)
{
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        if (freopen("/dev/null", "w", stderr))
            work();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

/* ---- threads ---- */

static __global__ void place_device(int *y)
{
    int thread = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    int block = (int)(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    y[block * (int)(blockDim.x * blockDim.y * blockDim.z) + thread]++;
}

static void test_places(void **)
{
    Device<int> y(2 * 3 * 4 * 5 * 6 * 7);
    ht_launch(place_device, dim3(2, 3, 4), dim3(5, 6, 7), 0, y.data);
    for (int count : y.get())
        assert_int_equal(count, 1);
}

static __global__ void reverse_device(float *x, int n)
{
    __shared__ float fixed[256];
    HT_SHARED(float, dynamic);
    int i = (int)threadIdx.x;
    fixed[i] = x[i];
    __syncthreads();
    dynamic[i] = fixed[n - 1 - i] + 1;
    __syncthreads();
    x[i] = dynamic[n - 1 - i] + fixed[n - 1 - i];
}

static void test_shared_memory(void **)
{
    std::vector<float> x(256);
    for (int i = 0; i < 256; i++)
        x[(size_t)i] = (float)i;
    Device<float> d(x);
    ht_launch(reverse_device, 1, 256, 256 * sizeof(float), d.data, 256);
    std::vector<float> y = d.get();
    for (int i = 0; i < 256; i++)
        assert_float_equal(y[(size_t)i], (float)(i + 1 + 255 - i), 0);
}

/* Keeps BYTES bytes in a variable and uses the first and the last of `dynamic` others. */
template <int BYTES> static __global__ void keep_device(int *y, int dynamic)
{
    __shared__ char kept[BYTES];
    HT_SHARED(char, asked);
    kept[threadIdx.x] = 1;
    if (dynamic)
        asked[0] = asked[dynamic - 1] = 2;
    __syncthreads();
    y[threadIdx.x] = kept[threadIdx.x] + (dynamic ? asked[0] : 0);
}

/* The same in functions that the kernel calls: their bytes count as well. */
template <int BYTES> static __device__ int keep_once(int place)
{
    __shared__ char kept[BYTES];
    kept[threadIdx.x] = 1;
    __syncthreads();
    return kept[place];
}

static __global__ void keep_twice_device(int *y, int deep)
{
    HT_SHARED(char, asked);
    asked[0] = 1;
    *y = keep_once<30000>(*y) + (deep ? keep_once<20000>(*y) : 0);
}

static void launch_unasked(void (*kernel)(int *, int), size_t shared, int *y, int last)
{
    ht_emulated_launch(1, 1, shared, stream, kernel, y, last);
    HT_CUDA(cudaStreamSynchronize(stream));
}

static void launch_asked(void (*kernel)(int *, int), size_t shared, int *y, int last)
{
    ht_launch(kernel, 1, 1, shared, y, last);
    HT_CUDA(cudaStreamSynchronize(stream));
}

/* Variables and dynamic memory together have 48 KiB, and what a block may have where the launch has asked for it, as ht_launch does. */
static void test_all_shared_memory_counts(void **)
{
    const int limit = 48 * 1024, most = 227 * 1024, step = 128;
    Device<int> y(1);
    assert_false(dies([&] { launch_unasked(keep_device<4>, limit - step, y.data, limit - step); }));
    assert_true(dies([&] { launch_unasked(keep_device<4>, limit, y.data, limit); }));
    assert_true(dies([&] { launch_unasked(keep_device<4>, limit - step + 1, y.data, limit - step + 1); }));
    assert_true(dies([&] { launch_unasked(keep_device<limit + 1>, 0, y.data, 0); }));
    assert_false(dies([&] { launch_unasked(keep_device<limit>, 0, y.data, 0); }));
    assert_false(dies([&] { launch_asked(keep_device<4>, limit, y.data, limit); }));
    assert_false(dies([&] { launch_asked(keep_device<4>, most - step, y.data, most - step); }));
    assert_true(dies([&] { launch_asked(keep_device<4>, most, y.data, most); }));
    assert_true(dies([&] { launch_asked(keep_device<2000>, most - step, y.data, most - step); }));
    assert_false(dies([&] { launch_unasked(keep_twice_device, 128, y.data, 0); }));
    assert_true(dies([&] { launch_unasked(keep_twice_device, 128, y.data, 1); }));
    assert_false(dies([&] { launch_asked(keep_twice_device, 128, y.data, 1); }));
}

/* Half of the threads return before the barrier, the last warp is not full. */
static __global__ void leave_device(int *count)
{
    if (threadIdx.x % 2)
        return;
    int here = __syncthreads_count(threadIdx.x % 4 == 0);
    if (threadIdx.x == 0)
        *count = here;
}

static void test_leaving_before_a_barrier(void **)
{
    Device<int> count(1);
    ht_launch(leave_device, 1, 41, 0, count.data);
    assert_int_equal(count.get()[0], 11);
}

static __global__ void shuffle_device(int *y)
{
    int lane = (int)threadIdx.x % 32, sum = lane;
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    int *mine = y + threadIdx.x * 8;
    mine[0] = sum;
    mine[1] = __shfl_sync(0xffffffffu, lane, 5);
    mine[2] = __shfl_up_sync(0xffffffffu, lane, 3);
    mine[3] = __shfl_down_sync(0xffffffffu, lane, 3);
    mine[4] = __shfl_sync(0xffffffffu, lane, 1, 8);
    mine[5] = (int)__ballot_sync(0xffffffffu, lane % 3 == 0);
    mine[6] = __reduce_max_sync(0xffffffffu, lane * 2);
    unsigned quarter = 0xffu << lane / 8 * 8;
    int part = 0;
    for (int i = 0; i <= lane / 8; i++)
        part = __reduce_add_sync(quarter, lane);
    mine[7] = part;
}

static void test_shuffles(void **)
{
    Device<int> d(64 * 8);
    ht_launch(shuffle_device, 1, 64, 0, d.data);
    std::vector<int> y = d.get();
    for (int i = 0; i < 64; i++) {
        const int *mine = &y[(size_t)i * 8], lane = i % 32;
        assert_int_equal(mine[0], 496);
        assert_int_equal(mine[1], 5);
        assert_int_equal(mine[2], lane < 3 ? lane : lane - 3);
        assert_int_equal(mine[3], lane > 28 ? lane : lane + 3);
        assert_int_equal(mine[4], lane / 8 * 8 + 1);
        assert_int_equal(mine[5], 0x49249249);
        assert_int_equal(mine[6], 62);
        assert_int_equal(mine[7], 28 + lane / 8 * 64);
    }
}

static __global__ void atomics_device(int *count, float *sum, unsigned long long *most)
{
    atomicAdd(count, 1);
    atomicAdd(sum, 0.5f);
    atomicMax(most, (unsigned long long)ht_thread());
}

static void test_atomics(void **)
{
    Device<int> count(1);
    Device<float> sum(1);
    Device<unsigned long long> most(1);
    ht_launch(atomics_device, 10, 100, 0, count.data, sum.data, most.data);
    assert_int_equal(count.get()[0], 1000);
    assert_float_equal(sum.get()[0], 500, 0);
    assert_int_equal(most.get()[0], 999);
}

/* ---- tensor cores ---- */

/* c = a bᵀ for a 16 x 16 and b 8 x 16, by way of shared memory. */
static __global__ void multiply_device(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b)
{
    HT_SHARED(__nv_bfloat16, shared);
    unsigned lane = threadIdx.x;
    copy_begin(shared + lane * 8, a + lane * 8, true);
    copy_begin(shared + 256 + lane * 8, b + lane % 16 * 8, lane < 16);
    copy_commit();
    copy_wait<0>();
    __syncwarp();
    uint32_t left[4], right[4];
    tensor_load(left, shared + (lane % 16) * 16 + lane / 16 * 8);
    tensor_load(right, shared + 256 + (lane % 8) * 16 + lane / 8 % 2 * 8);
    float sum[4] = {0, 0, 0, 0};
    tensor_multiply(sum, left, right[0], right[1]);
    for (unsigned i = 0; i < 4; i++)
        c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

static void test_tensor_cores(void **)
{
    std::vector<__nv_bfloat16> a(256), b(128);
    for (size_t i = 0; i < 256; i++)
        a[i] = __nv_bfloat16((float)((i * 7) % 13) - 6);
    for (size_t i = 0; i < 128; i++)
        b[i] = __nv_bfloat16((float)((i * 5) % 11) - 5);
    Device<__nv_bfloat16> left(a), right(b);
    Device<float> product(128);
    ht_launch(multiply_device, 1, 32, 1024, product.data, left.data, right.data);
    std::vector<float> c = product.get();
    for (size_t i = 0; i < 16; i++)
        for (size_t j = 0; j < 8; j++) {
            float sum = 0;
            for (size_t k = 0; k < 16; k++)
                sum += (float)a[i * 16 + k] * (float)b[j * 16 + k];
            assert_float_equal(c[i * 8 + j], sum, 0);
        }
}

static void test_bfloat16(void **)
{
    const float from[] = {1.0f, 1.00390625f, 1.01171875f, -2.5f, 3.3895313892515355e38f};
    const float to[] = {1.0f, 1.0f, 1.015625f, -2.5f, 3.3895313892515355e38f};
    for (int i = 0; i < 5; i++)
        assert_float_equal(__bfloat162float(__float2bfloat16(from[i])), to[i], 0);
    assert_true(isnan(__bfloat162float(__float2bfloat16(NAN))));
    assert_true(isinf(__bfloat162float(__float2bfloat16(INFINITY))));
}

/* ---- streams and graphs ---- */

static __global__ void add_device(float *y, const float *x, int n)
{
    for (int64_t i = ht_thread(); i < n; i += ht_threads())
        y[i] += x[i];
}

static void add_on(cudaStream_t on, float *y, const float *x)
{
    cudaStream_t compute = stream;
    stream = on;
    ht_launch(add_device, 1, 32, 0, y, x, 1);
    stream = compute;
}

static void test_events_order_streams(void **)
{
    cudaEvent_t event;
    HT_CUDA(cudaEventCreate(&event));
    Device<float> one(std::vector<float>{1}), a(1), b(1), unordered(1);
    HT_CUDA(cudaDeviceSynchronize());
    add_on(stream, a.data, one.data);
    HT_CUDA(cudaEventRecord(event, stream));
    add_on(second, unordered.data, a.data);
    HT_CUDA(cudaStreamWaitEvent(second, event));
    add_on(second, b.data, a.data);
    HT_CUDA(cudaStreamSynchronize(second));
    assert_float_equal(b.get()[0], 1, 0);
    assert_float_equal(unordered.get()[0], late ? 0 : 1, 0);
    HT_CUDA(cudaEventDestroy(event));
}

/* Work that has just begun is not ready, and that counts as an error until someone asks for it. */
static void test_queries(void **)
{
    Device<float> one(std::vector<float>{1}), a(1);
    add_on(stream, a.data, one.data);
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    assert_true(dies([&] { add_on(stream, a.data, one.data); }));
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    assert_int_equal(cudaStreamQuery(stream), cudaSuccess);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_float_equal(a.get()[0], 1, 0);
}

static void test_graphs_replay(void **)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaEvent_t fork, join;
    HT_CUDA(cudaEventCreate(&fork));
    HT_CUDA(cudaEventCreate(&join));
    Device<float> one(std::vector<float>{1}), a(1), b(1);
    HT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    add_on(stream, a.data, one.data);
    HT_CUDA(cudaEventRecord(fork, stream));
    HT_CUDA(cudaStreamWaitEvent(second, fork));
    add_on(second, b.data, a.data);
    HT_CUDA(cudaEventRecord(join, second));
    assert_int_equal(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
    HT_CUDA(cudaStreamWaitEvent(stream, join));
    add_on(stream, a.data, b.data);
    HT_CUDA(cudaStreamEndCapture(stream, &graph));
    assert_float_equal(a.get()[0], 0, 0);
    size_t nodes = 0;
    HT_CUDA(cudaGraphGetNodes(graph, nullptr, &nodes));
    assert_int_equal(nodes, 3);
    HT_CUDA(cudaGraphInstantiate(&exec, graph));
    for (int i = 0; i < 3; i++)
        HT_CUDA(cudaGraphLaunch(exec, stream));
    assert_float_equal(a.get()[0], 20, 0);
    assert_float_equal(b.get()[0], 12, 0);
    HT_CUDA(cudaGraphExecDestroy(exec));
    HT_CUDA(cudaGraphDestroy(graph));
    HT_CUDA(cudaEventDestroy(fork));
    HT_CUDA(cudaEventDestroy(join));
    cudaGetLastError();
}

static void test_graphs_need_joins(void **)
{
    cudaGraph_t graph;
    cudaEvent_t fork;
    HT_CUDA(cudaEventCreate(&fork));
    Device<float> one(std::vector<float>{1}), a(1);
    HT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    add_on(stream, a.data, one.data);
    HT_CUDA(cudaEventRecord(fork, stream));
    HT_CUDA(cudaStreamWaitEvent(second, fork));
    add_on(second, a.data, one.data);
    void *memory;
    assert_int_equal(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
    cudaStreamCaptureStatus status;
    HT_CUDA(cudaStreamIsCapturing(second, &status));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    HT_CUDA(cudaEventDestroy(fork));
    cudaGetLastError();
}

/* ---- what must not pass ---- */

static __global__ void diverge_device(int *y)
{
    if (threadIdx.x < 7)
        __syncthreads();
    else
        __syncthreads();
    *y = 1;
}

static __global__ void absent_device(int *y)
{
    if (threadIdx.x != 3)
        *y = __shfl_sync(0xffffffffu, *y, 0);
}

static __global__ void overflow_device(int *y, int at)
{
    HT_SHARED(int, shared);
    shared[at] = 7;
    *y = shared[at];
}

static __global__ void store_device(int *y, int at) { y[at] = 7; }

static void test_mistakes_end_the_program(void **)
{
    Device<int> y(1);
    int host = 0;
    auto wait = [] { HT_CUDA(cudaDeviceSynchronize()); };
    assert_true(dies([&] { ht_launch(diverge_device, 1, 64, 0, y.data), wait(); }));
    assert_true(dies([&] { ht_launch(absent_device, 1, 32, 0, y.data), wait(); }));
    assert_true(dies([&] { ht_launch(overflow_device, 1, 1, 16, y.data, 4), wait(); }));
    assert_false(dies([&] { ht_launch(overflow_device, 1, 1, 16, y.data, 3), wait(); }));
    assert_true(dies([&] { ht_launch(store_device, 1, 1, 0, y.data, 1), wait(); }));
    assert_true(dies([&] { ht_launch(store_device, 1, 1, 0, &host, 0), wait(); }));
    assert_true(dies([&] { ht_launch(store_device, 1, 1025, 0, y.data, 0), wait(); }));
    assert_true(dies([&] { *(volatile int *)y.data = 1; }));
    cudaEvent_t event;
    HT_CUDA(cudaEventCreate(&event));
    assert_true(dies([&] { cudaStreamWaitEvent(stream, event); }));
    HT_CUDA(cudaEventDestroy(event));
}

static void test_copies_are_checked(void **)
{
    Device<int> y(2);
    int host[2] = {1, 2};
    assert_int_equal(cudaMemcpy(host, y.data, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(cudaMemcpy(y.data + 1, host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(y.data, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    assert_int_equal(y.get()[1], 2);
    cudaGetLastError();
}

/* ---- cuBLASLt ---- */

/* d = gelu(aᵀ b + bias) with the value before gelu kept; a is 5 x 8, b is 5 x 3, column-major. */
static void test_products(void **)
{
    const int64_t m = 8, n = 3, k = 5;
    std::vector<float> a((size_t)(k * m)), b((size_t)(k * n)), bias((size_t)m);
    for (size_t i = 0; i < a.size(); i++)
        a[i] = (float)(i % 7) - 3;
    for (size_t i = 0; i < b.size(); i++)
        b[i] = (float)(i % 5) / 2 - 1;
    for (size_t i = 0; i < bias.size(); i++)
        bias[i] = (float)i / 8;
    Device<float> A(a), B(b), Bias(bias), D((size_t)(m * n)), Aux((size_t)(m * n));
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t la, lb, ld;
    assert_int_equal(cublasLtCreate(&handle), 0);
    assert_int_equal(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), 0);
    cublasOperation_t transposed = CUBLAS_OP_T;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    int64_t pitch = m;
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &Bias.data, sizeof(void *));
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &Aux.data, sizeof(void *));
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &pitch, sizeof pitch);
    cublasLtMatrixLayoutCreate(&la, CUDA_R_32F, k, m, k);
    cublasLtMatrixLayoutCreate(&lb, CUDA_R_32F, k, n, k);
    cublasLtMatrixLayoutCreate(&ld, CUDA_R_32F, m, n, m);
    float one = 1, zero = 0;
    auto run = [&] {
        return cublasLtMatmul(handle, desc, &one, A.data, la, B.data, lb, &zero, D.data, ld, D.data, ld, nullptr, nullptr, 0, stream);
    };
    assert_int_equal(run(), CUBLAS_STATUS_SUCCESS);
    std::vector<float> d = D.get(), aux = Aux.get();
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++) {
            float sum = bias[(size_t)i];
            for (int64_t l = 0; l < k; l++)
                sum += a[(size_t)(i * k + l)] * b[(size_t)(j * k + l)];
            float gelu = 0.5f * sum * (1 + tanhf(0.79788456f * (sum + 0.044715f * sum * sum * sum)));
            assert_float_equal(aux[(size_t)(j * m + i)], sum, 1e-6);
            assert_float_equal(d[(size_t)(j * m + i)], gelu, 1e-6);
        }
    pitch = m + 1;
    cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &pitch, sizeof pitch);
    assert_int_equal(run(), CUBLAS_STATUS_NOT_SUPPORTED);
    cublasLtMatrixLayoutDestroy(la);
    cublasLtMatrixLayoutDestroy(lb);
    cublasLtMatrixLayoutDestroy(ld);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
}

static void test_no_device(void **)
{
    assert_false(dies([] {
        setenv("HETU_EMULATE_DEVICES", "0", 1);
        execl("/proc/self/exe", "emulation", "no device", (char *)nullptr);
    }));
}

/* The program itself, when there are no devices. */
static int check_no_device(void)
{
    int count = 1;
    if (cudaGetDeviceCount(&count) != cudaErrorNoDevice || count != 0 || cudaSetDevice(0) != cudaErrorNoDevice)
        abort();
    return 0;
}

int main(int count, char **)
{
    if (count > 1)
        return check_no_device();
    HT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    HT_CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    const struct CMUnitTest emulation[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_shared_memory),
        cmocka_unit_test(test_all_shared_memory_counts),
        cmocka_unit_test(test_leaving_before_a_barrier),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_tensor_cores),
        cmocka_unit_test(test_bfloat16),
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_graphs_replay),
        cmocka_unit_test(test_graphs_need_joins),
        cmocka_unit_test(test_mistakes_end_the_program),
        cmocka_unit_test(test_copies_are_checked),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_no_device),
    };
    return cmocka_run_group_tests(emulation, nullptr, nullptr);
}
