/* Kernels that copy between storage orders with an epilogue, and that compute any contraction. */
#include "cuda/product.h"
#include "cuda/views.h"

enum { CONTRACT_THREADS = 256 };

/* A list of axes, as a kernel argument. */
typedef struct Axes {
    int64_t count;
    ht_axis at[HT_MAX_AXES];
} Axes;

static __device__ inline Place device_place(int64_t i, const Axes &axes) {
    Place at = {0, 0, 0, 0};
    for (int64_t d = axes.count - 1; d >= 0; d--) {
        const ht_axis &axis = axes.at[d];
        const int64_t c = i % axis.extent;
        i /= axis.extent;
        at.y += c * axis.y;
        at.x += c * axis.x;
        at.w += c * axis.w;
        at.b += c * axis.b;
    }
    return at;
}

static __device__ inline float load_float(const void *data, ht_dtype dtype, int64_t i) {
    return dtype == HT_BF16 ? ht_bf16_load(static_cast<const uint16_t *>(data)[i])
                            : static_cast<const float *>(data)[i];
}

static __device__ inline void store_float(void *data, ht_dtype dtype, int64_t i, float value) {
    if (dtype == HT_BF16) static_cast<uint16_t *>(data)[i] = ht_bf16_store(value);
    else static_cast<float *>(data)[i] = value;
}

static __device__ inline float activate(float x, ht_epilogue epilogue) {
    switch (epilogue) {
    case HT_RELU: return x <= 0 ? 0 : x;
    case HT_GELU: return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
    case HT_NO_EPILOGUE: break;
    }
    return x;
}

/* Applies the epilogue to a value; writes element `y` of y and aux. */
static __device__ inline void finish_element(const Finish &f, float value, int64_t y, int64_t b) {
    if (f.bias) value += load_float(f.bias, f.bias_dtype, b);
    if (f.aux) store_float(f.aux, f.y_dtype, y, value);
    store_float(f.y, f.y_dtype, y, activate(value, f.epilogue));
}

/* Copies runs of elements, with the epilogue, on a grid of (elements of a run, runs). */
__global__ void copy_runs_device(Finish f, const void *from, Axes axes, ht_axis inner,
                                 int64_t runs) {
    for (int64_t r = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; r < runs;
         r += (int64_t)gridDim.y * blockDim.y) {
        const Place at = device_place(r, axes);
        for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < inner.extent;
             i += (int64_t)gridDim.x * blockDim.x)
            finish_element(f, load_float(from, f.from_dtype, at.x + i * inner.x),
                           at.y + i * inner.y, at.b + i * inner.b);
    }
}

static Axes axes_of(int count, const ht_axis *from) {
    Axes axes = {count, {}};
    for (int d = 0; d < count; d++) axes.at[d] = from[d];
    return axes;
}

void contract_copy(const Finish &finish, const void *from, int rank, const ht_axis *axes) {
    const Runs runs = runs_of(rank, axes);
    const dim3 block = unit_block(runs.inner.extent);
    ht_launch(copy_runs_device, unit_grid(block, runs.total, runs.inner.extent), block, 0, finish,
              from, axes_of(runs.count, runs.axes), runs.inner, runs.total);
}

/* The operands of a contraction, and its loops. */
typedef struct Plain {
    const void *x, *w;
    double scale;
    int64_t outer_total, sum_total, lanes; // lanes: threads per element of the result, 1 or HT_WARP
    Axes outer, sum;
} Plain;

__global__ void __launch_bounds__(CONTRACT_THREADS) contract_device(Finish f, Plain p) {
    const int64_t threads = (p.outer_total * p.lanes + HT_WARP - 1) / HT_WARP * HT_WARP;
    for (int64_t t = ht_thread(); t < threads; t += ht_threads()) {
        const int64_t element = t / p.lanes;
        const bool mine = element < p.outer_total;
        const Place at = device_place(mine ? element : 0, p.outer);
        float sum[1] = {0};
        for (int64_t s = t % p.lanes; s < p.sum_total && mine; s += p.lanes) {
            const Place in = device_place(s, p.sum);
            sum[0] += load_float(p.x, f.from_dtype, at.x + in.x) *
                      load_float(p.w, f.from_dtype, at.w + in.w);
        }
        if (p.lanes > 1) sum[0] = ht_warp_sum(sum[0]);
        if (mine && t % p.lanes == 0) finish_element(f, (float)p.scale * sum[0], at.y, at.b);
    }
}

void contract_plain(const ht_product_call *call) {
    Plain p = {call->x, call->w, call->scale, 1, 1, 1, {}, {}};
    for (int i = 0; i < call->rank; i++) {
        const ht_axis &axis = call->axes[i];
        Axes *to = axis.y ? &p.outer : &p.sum;
        if (axis.extent == 1) continue;
        to->at[to->count++] = axis;
        (axis.y ? p.outer_total : p.sum_total) *= axis.extent;
    }
    p.lanes = p.sum_total > HT_WARP ? HT_WARP : 1;
    const Finish finish = {call->y,          call->aux,   call->bias,    call->y_dtype,
                           call->bias_dtype, call->dtype, call->epilogue};
    ht_launch(contract_device, ht_blocks(p.outer_total * p.lanes, CONTRACT_THREADS),
              CONTRACT_THREADS, 0, finish, p);
}

enum { SUMS_PART = 64 }; // rows for each warp, unless blocks are limited

/* Arguments of a sum of an operand: `gone` axes are summed over, `kept` axes remain. */
typedef struct Summed {
    const void *from;
    float *sums;
    int64_t kept_total, gone_total;
    Axes kept, gone; // field x is the stride in the operand
} Summed;

/* Sums each column by one thread of each warp; warps of a block, and blocks, divide the rows. */
template <typename T> __global__ void sums_device(Summed s) {
    const int64_t column = (int64_t)blockIdx.x * HT_WARP + threadIdx.x,
                  step = (int64_t)gridDim.y * HT_MOST_WARPS;
    const bool mine = column < s.kept_total;
    const Place own = device_place(mine ? column : 0, s.kept);
    const T *from = static_cast<const T *>(s.from) + own.x;
    double sum[1] = {0};
    for (int64_t r = (int64_t)blockIdx.y * HT_MOST_WARPS + threadIdx.y; r < s.gone_total && mine;
         r += step) {
        float x[1];
        ht_load(x, from + device_place(r, s.gone).x);
        sum[0] += x[0];
    }
    if (ht_column_sums(sum) && mine) s.sums[own.b] = (float)sum[0];
}

void contract_sums(const ht_product_call *call) {
    Summed s = {call->sums_of_w ? call->w : call->x, call->sums, 1, 1, {}, {}};
    for (int i = 0; i < call->rank; i++) {
        ht_axis axis = call->axes[i];
        axis.x = call->sums_of_w ? axis.w : axis.x;
        if (axis.extent == 1 || !axis.x) continue;
        Axes *to = axis.y ? &s.kept : &s.gone;
        to->at[to->count++] = axis;
        (axis.y ? s.kept_total : s.gone_total) *= axis.extent;
    }
    const int64_t blocks = (s.kept_total + HT_WARP - 1) / HT_WARP, most = 512 / blocks + 1,
                  rows = (int64_t)HT_MOST_WARPS * SUMS_PART;
    int64_t parts = (s.gone_total + rows - 1) / rows;
    parts = parts > most ? most : parts < 1 ? 1 : parts;
    const dim3 grid((unsigned)blocks, blocks > HT_SUM_GROUPS ? 1 : (unsigned)parts),
        block(HT_WARP, HT_MOST_WARPS);
    if (call->dtype == HT_BF16) ht_launch(sums_device<uint16_t>, grid, block, 0, s);
    else ht_launch(sums_device<float>, grid, block, 0, s);
}
