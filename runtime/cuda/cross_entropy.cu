/* The parts of cross-entropy: a row's maximum, and the sum of its exponentials. A vocabulary may be
 * cut (vocabulary parallelism), as cpu/cross_entropy.c says.
 *
 * Rows are long (a vocabulary) and may begin at any address. A block takes a row, and reads 16
 * bytes a thread from the first aligned address on. */
#include "operators/kernels.h"
#include "cuda/team.h"

enum { IGNORED = -100 }; // PyTorch's ignore_index
enum {
    LONG_ROW_BLOCKS = 8,    // blocks for each multiprocessor
    LONG_ROW_THREADS = 256, // threads of a block
    READS = 4               // loads in flight for each thread
};

/* Cross-entropy uses __expf, which has half the instructions of expf. The relative error of __expf
 * is below 2^-21 for results above e^-10 of the largest one; smaller results contribute little. */

/* Calls visit.operator()<N>(i) for the elements [i, i + N) of a row, in the threads of a block. N
 * is the number of elements in 16 bytes between the first and the last aligned address, and 1
 * outside. AT_ONCE visits may be in flight together. */
template <int AT_ONCE, typename T, typename Visit>
static __device__ inline void visit_row(const T *row, int64_t n, Visit visit) {
    constexpr int V = VECTOR_OF<T>;
    const int64_t off = (int64_t)(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(T)),
                  room = off ? V - off : 0;
    const int64_t head = room < n ? room : n, end = head + (n - head) / V * V;
    for (int64_t i = threadIdx.x; i < head; i += blockDim.x) visit.template operator()<1>(i);
#ifdef __CUDACC__
#pragma unroll AT_ONCE
#endif
    for (int64_t i = head + (int64_t)threadIdx.x * V; i < end; i += LONG_ROW_THREADS * V)
        visit.template operator()<V>(i);
    for (int64_t i = end + threadIdx.x; i < n; i += blockDim.x) visit.template operator()<1>(i);
}

template <typename T>
__global__ void __launch_bounds__(LONG_ROW_THREADS)
    row_max_device(float *peak, const T *x, int64_t rows, int64_t n) {
    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        const T *row = x + r * n;
        float top = -INFINITY;
        visit_row<READS>(row, n, [&]<int N>(int64_t i) {
            float v[N];
            ht_load(v, row + i);
            CUDA_UNROLL
            for (int e = 0; e < N; e++) top = larger(top, v[e]);
        });
        top = team_max(top);
        if (threadIdx.x == 0) peak[r] = top;
    }
}

/* Returns the grid: a block for each row, up to the number that keeps the device busy. */
static dim3 long_row_blocks(int64_t rows) {
    const int64_t most = (int64_t)LONG_ROW_BLOCKS * cuda_processors();
    return dim3((unsigned)(rows < most ? rows : most));
}

void ht_row_max_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0];
    float *peak = view_f32(&call->result[0], "row_max");
    const int64_t rows = view_rows(x), n = view_columns(x);
    if (rows == 0) return;
    with_float("row_max", {x}, [&]<typename T>() {
        ht_launch(row_max_device<T>, long_row_blocks(rows), LONG_ROW_THREADS, 0, peak,
                  static_cast<const T *>(x->data), rows, n);
    });
}

/* The rows of a cross-entropy: logits of this piece of the vocabulary, and the rows' targets. */
typedef struct Classes {
    Indices target;
    const float *peak;
    int64_t rows, n;
    Places places; // global indices of the classes
    CudaReport report;
} Classes;

static Classes classes_of(const ht_view *x, const ht_view *target, const ht_view *peak) {
    const int last = x->rank - 1;
    return {indices_of(target, "cross_entropy"),
            view_f32(peak, "cross_entropy"),
            view_rows(x),
            x->extent[last],
            places_of(x, last),
            cuda_report("target %lld at element %lld is outside the %lld classes", target)};
}

/* Returns the column of row r's target in this piece; -1: ignored, a fault, or elsewhere. */
static __device__ inline int64_t target_column(const Classes &c, int64_t r) {
    const int64_t target = c.target.at(r);
    if (target == IGNORED) return -1;
    if (target < 0 || target >= c.places.global) {
        cuda_fault(c.report, target, r, c.places.global);
        return -1;
    }
    return c.places.find(target);
}

template <typename T>
__global__ void __launch_bounds__(LONG_ROW_THREADS)
    mass_device(float *mass, float *hit, const T *x, Classes c) {
    for (int64_t r = blockIdx.x; r < c.rows; r += gridDim.x) {
        const T *row = x + r * c.n;
        const float peak = c.peak[r];
        float sum[1] = {0};
        visit_row<READS>(row, c.n, [&]<int N>(int64_t i) {
            float v[N];
            ht_load(v, row + i);
            CUDA_UNROLL
            for (int e = 0; e < N; e++) sum[0] += __expf(v[e] - peak);
        });
        team_sum(sum);
        if (threadIdx.x != 0) continue;
        float of_target[1] = {0};
        const int64_t column = target_column(c, r);
        if (column >= 0) ht_load(of_target, row + column);
        mass[r] = sum[0];
        hit[r] = of_target[0];
    }
}

void ht_mass_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0];
    float *mass = view_f32(&call->result[0], "cross_entropy"),
          *hit = view_f32(&call->result[1], "cross_entropy");
    const Classes c = classes_of(x, &call->operand[1], &call->operand[2]);
    if (c.rows == 0) return;
    with_float("cross_entropy", {x}, [&]<typename T>() {
        ht_launch(mass_device<T>, long_row_blocks(c.rows), LONG_ROW_THREADS, 0, mass, hit,
                  static_cast<const T *>(x->data), c);
    });
}

/* The maximum of some elements, and the sum of exp(element - maximum). */
typedef struct PeakMass {
    float peak, mass;

    /* Returns the sum, rescaled from `peak` to the larger maximum `to`; 0 while it is empty. */
    __device__ float shrunk(float to) const {
        return peak == -INFINITY ? 0 : mass * __expf(peak - to);
    }

    template <int N> __device__ void take(const float (&v)[N]) {
        float top = peak;
        CUDA_UNROLL
        for (int e = 0; e < N; e++) top = larger(top, v[e]);
        mass = top == peak ? mass : shrunk(top);
        peak = top;
        const float base = top == -INFINITY ? 0 : top;
        CUDA_UNROLL
        for (int e = 0; e < N; e++) mass += __expf(v[e] - base);
    }
} PeakMass;

/* Reads each row once (Milakov and Gimelshein: Online normalizer calculation for softmax, 2018). A
 * row without a finite element gets a sum of NaN, as in mass_device. */
template <typename T>
__global__ void __launch_bounds__(LONG_ROW_THREADS)
    peak_mass_device(float *peak, float *mass, float *hit, const T *x, Classes c) {
    for (int64_t r = blockIdx.x; r < c.rows; r += gridDim.x) {
        const T *row = x + r * c.n;
        PeakMass own = {-INFINITY, 0};
        visit_row<READS>(row, c.n, [&]<int N>(int64_t i) {
            float v[N];
            ht_load(v, row + i);
            own.take(v);
        });
        const float top = team_max(own.peak);
        float sum[1] = {top == -INFINITY ? NAN : own.shrunk(top)};
        team_sum(sum);
        if (threadIdx.x != 0) continue;
        float of_target[1] = {0};
        const int64_t column = target_column(c, r);
        if (column >= 0) ht_load(of_target, row + column);
        peak[r] = top;
        mass[r] = sum[0];
        hit[r] = of_target[0];
    }
}

void ht_peak_mass_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], none = {};
    float *peak = view_f32(&call->result[0], "cross_entropy"),
          *mass = view_f32(&call->result[1], "cross_entropy");
    float *hit = view_f32(&call->result[2], "cross_entropy");
    const Classes c = classes_of(x, &call->operand[1], &none);
    if (c.rows == 0) return;
    with_float("cross_entropy", {x}, [&]<typename T>() {
        ht_launch(peak_mass_device<T>, long_row_blocks(c.rows), LONG_ROW_THREADS, 0, peak, mass,
                  hit, static_cast<const T *>(x->data), c);
    });
}

/* The gradients of each row's sum (mass) and of its target's element (hit). */
typedef struct MassGradient {
    const float *dmass, *dhit;
} MassGradient;

template <typename T>
__global__ void __launch_bounds__(LONG_ROW_THREADS)
    mass_backward_device(T *dx, const T *x, MassGradient d, Classes c) {
    for (int64_t r = blockIdx.x; r < c.rows; r += gridDim.x) {
        const T *from = x + r * c.n;
        T *to = dx + r * c.n;
        const float peak = c.peak[r], dmass = d.dmass[r], dhit = d.dhit[r];
        const int64_t column = target_column(c, r);
        auto visit = [&]<int N>(int64_t i) {
            float v[N];
            ht_load(v, from + i);
            CUDA_UNROLL
            for (int e = 0; e < N; e++)
                v[e] = dmass * __expf(v[e] - peak) + (i + e == column ? dhit : 0);
            ht_store(to + i, v);
        };
        if ((reinterpret_cast<uintptr_t>(from) - reinterpret_cast<uintptr_t>(to)) % 16 == 0)
            visit_row<1>(from, c.n, visit);
        else
            for (int64_t i = threadIdx.x; i < c.n; i += blockDim.x) visit.template operator()<1>(i);
    }
}

void ht_mass_backward_kernel(const ht_call *call) {
    const ht_view *dx = &call->result[0], *x = &call->operand[2];
    const MassGradient d = {view_f32(&call->operand[0], "cross_entropy"),
                            view_f32(&call->operand[1], "cross_entropy")};
    const Classes c = classes_of(x, &call->operand[3], &call->operand[4]);
    if (c.rows == 0 || c.n == 0) return;
    with_float("cross_entropy", {dx, x}, [&]<typename T>() {
        ht_launch(mass_backward_device<T>, long_row_blocks(c.rows), LONG_ROW_THREADS, 0,
                  static_cast<T *>(dx->data), static_cast<const T *>(x->data), d, c);
    });
}
