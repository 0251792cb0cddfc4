/* The kernels of custom.c for CUDA. Views have device pointers; ht_launch queues a kernel after the work that computes its operands. */
#include <hetu/cuda_loops.h>

enum { ROWS = 8 }; // rows of a block; each has a warp

static dim3 rows_grid(int64_t rows) { return dim3((unsigned)((rows + ROWS - 1) / ROWS)); }

/* ---- y = x / s with s = mean(x^4)^(1/4) over the last dimension ---- */

static __global__ void quartic_norm_device(float *y, float *scale, const float *x, int64_t rows, int64_t width)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows)
        return;
    double sum = 0;
    for (int64_t c = threadIdx.x; c < width; c += 32) {
        const double square = (double)x[r * width + c] * x[r * width + c];
        sum += square * square;
    }
    const float s = (float)sqrt(sqrt((ht_warp_sum(sum) + 1e-12) / (double)width));
    if (threadIdx.x == 0)
        scale[r] = s;
    for (int64_t c = threadIdx.x; c < width; c += 32)
        y[r * width + c] = x[r * width + c] / s;
}

extern "C" void quartic_norm_cuda(const ht_call *call)
{
    const ht_view *x = &call->operand[0], *scale = &call->result[1];
    const int64_t rows = ht_view_count(scale, 0, scale->rank), width = x->extent[x->rank - 1];
    ht_launch(quartic_norm_device, rows_grid(rows), dim3(32, ROWS), 0, (float *)call->result[0].data, (float *)scale->data,
              (const float *)x->data, rows, width);
}

/* dx = (dy - y^3 mean(dy y)) / s */
static __global__ void quartic_norm_backward_device(float *dx, const float *dy, const float *y, const float *scale, int64_t rows, int64_t width)
{
    const int64_t r = (int64_t)blockIdx.x * ROWS + threadIdx.y;
    if (r >= rows)
        return;
    double sum = 0;
    for (int64_t c = threadIdx.x; c < width; c += 32)
        sum += (double)dy[r * width + c] * y[r * width + c];
    const float mean = (float)(ht_warp_sum(sum) / (double)width);
    for (int64_t c = threadIdx.x; c < width; c += 32) {
        const float v = y[r * width + c];
        dx[r * width + c] = (dy[r * width + c] - v * v * v * mean) / scale[r];
    }
}

extern "C" void quartic_norm_backward_cuda(const ht_call *call)
{
    const ht_view *dy = &call->operand[0], *scale = &call->operand[2];
    const int64_t rows = ht_view_count(scale, 0, scale->rank), width = dy->extent[dy->rank - 1];
    ht_launch(quartic_norm_backward_device, rows_grid(rows), dim3(32, ROWS), 0, (float *)call->result[0].data, (const float *)dy->data,
              (const float *)call->operand[1].data, (const float *)scale->data, rows, width);
}

/* ---- y(b, e) = sum over s of w(s) x(b, s, e) ---- */

static __device__ float tent(int64_t at, int64_t length)
{
    return (1 - fabsf((float)(2 * at + 1 - length) / (float)length)) * 2 / (float)length;
}

static __global__ void tent_pool_device(float *y, const float *x, int64_t rows, int64_t length, int64_t width, ht_view in)
{
    for (int64_t i = ht_thread(); i < rows * width; i += ht_threads()) {
        const int64_t b = i / width, e = i % width;
        float sum = 0;
        for (int64_t s = 0; s < length; s++)
            sum += tent(ht_view_place(&in, 1, s), in.global[1]) * x[(b * length + s) * width + e];
        y[i] = sum;
    }
}

extern "C" void tent_pool_cuda(const ht_call *call)
{
    const ht_view *x = &call->operand[0];
    ht_launch(tent_pool_device, ht_blocks(x->extent[0] * x->extent[2], 256), 256, 0, (float *)call->result[0].data, (const float *)x->data,
              x->extent[0], x->extent[1], x->extent[2], *x);
}

static __global__ void tent_spread_device(float *dx, const float *dy, int64_t rows, int64_t length, int64_t width, ht_view out)
{
    for (int64_t i = ht_thread(); i < rows * length * width; i += ht_threads()) {
        const int64_t b = i / (length * width), s = i / width % length, e = i % width;
        dx[i] = tent(ht_view_place(&out, 1, s), out.global[1]) * dy[b * width + e];
    }
}

extern "C" void tent_spread_cuda(const ht_call *call)
{
    const ht_view *dx = &call->result[0];
    ht_launch(tent_spread_device, ht_blocks(dx->extent[0] * dx->extent[1] * dx->extent[2], 256), 256, 0, (float *)dx->data,
              (const float *)call->operand[0].data, dx->extent[0], dx->extent[1], dx->extent[2], *dx);
}
