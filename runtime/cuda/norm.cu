/* Layer norm, RMS norm and L2 norm over the last dimension. team.h shares rows among warps. */
#include "operators/kernels.h"
#include "cuda/team.h"

enum {
    FORWARD_BLOCKS = 8,    // most blocks of the forward kernel for each multiprocessor
    BACKWARD_THREADS = 768 // most threads of the backward kernel for each multiprocessor
};

/* Threads of the forward kernel for which the registers of a multiprocessor suffice. */
template <typename T, int V>
constexpr int FORWARD_THREADS = V == 1           ? 512
                                : sizeof(T) == 2 ? 1024
                                                 : 768;

/* Operands and results of forward. mean is NULL for norms that do not subtract it; weight and bias
 * are vectors or NULL. */
typedef struct Forward {
    const void *x;
    void *y;
    const float *weight, *bias;
    float *mean, *rstd;
    float eps;
    int length; // 1: rstd is 1 / max(length of the row, eps); 0: 1 / sqrt(mean of squares + eps)
} Forward;

/* Returns the mean of a row, or 0 if f.mean is NULL. x receives the last tile. */
template <typename T, int V>
static __device__ inline float row_mean(float (&x)[TEAM_ELEMENTS], const Forward &f,
                                        const Team &team, const TeamRow &row) {
    float sum[1] = {0};
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        team_load<V>(x, static_cast<const T *>(f.x), row, tile, 0);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) sum[0] += x[e];
    }
    if (!f.mean) return 0;
    team_sum(sum);
    return sum[0] / (float)team.n;
}

template <typename T, int V>
static __device__ inline float row_squares(float (&x)[TEAM_ELEMENTS], const Forward &f,
                                           const Team &team, const TeamRow &row, float mean) {
    float sum[1] = {0};
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1) team_load<V>(x, static_cast<const T *>(f.x), row, tile, mean);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            sum[0] += team_column<V>(tile, e) < row.n ? (x[e] - mean) * (x[e] - mean) : 0;
    }
    team_sum(sum);
    return sum[0];
}

/* Normalizes one row. The row is read once if it fits into registers. */
template <typename T, int V>
static __device__ inline void forward_row(const Forward &f, const Team &team, const TeamRow &row) {
    float x[TEAM_ELEMENTS] = {}, weight[TEAM_ELEMENTS], bias[TEAM_ELEMENTS];
    const float mean = row_mean<T, V>(x, f, team, row),
                squares = row_squares<T, V>(x, f, team, row, mean);
    const float length = f.length ? sqrtf(squares) : sqrtf(squares / (float)team.n + f.eps);
    const float rstd = 1.0f / (f.length && length < f.eps ? f.eps : length);
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1) team_load<V>(x, static_cast<const T *>(f.x), row, tile, 0);
        team_load_shared<V>(weight, f.weight, row, tile, 1);
        team_load_shared<V>(bias, f.bias, row, tile, 0);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) x[e] = (x[e] - mean) * rstd * weight[e] + bias[e];
        team_store<V>(static_cast<T *>(f.y), x, row, tile);
    }
    if (threadIdx.x == 0 && row.n > 0) {
        f.rstd[row.number] = rstd;
        if (f.mean) f.mean[row.number] = mean;
    }
}

/* Normalizes all rows. THREADS: size of the largest block; a smaller one allows more blocks. */
template <typename T, int V, int THREADS>
__global__ void __launch_bounds__(THREADS, (FORWARD_THREADS<T, V>) / THREADS)
    norm_device(Forward f, Team team) {
    for (int64_t first = team_first(); first < team.rows; first += team_step())
        forward_row<T, V>(f, team, team_row(team, first));
}

static void forward(const char *name, const ht_call *call, Forward f) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const int64_t n = view_columns(x);
    f.x = x->data;
    f.y = y->data;
    f.eps = (float)call->attr[0].f;
    const Team team = team_of(view_rows(x), n);
    if (team.rows == 0 || n == 0) return;
    with_vectors(name, n, {x, y}, {f.weight, f.bias}, [&]<typename T, int V>() {
        const bool few = team.warps * team.teams * HT_WARP <= TEAM_FEW_THREADS;
        const auto kernel =
            few ? norm_device<T, V, TEAM_FEW_THREADS> : norm_device<T, V, TEAM_MOST_THREADS>;
        ht_launch(kernel, team_blocks(team, FORWARD_BLOCKS), team_threads(team), 0, f, team);
    });
}

void ht_layer_norm_kernel(const ht_call *call) {
    Forward f = {};
    f.weight = view_f32(&call->operand[1], "layer_norm");
    f.bias = view_f32(&call->operand[2], "layer_norm");
    f.mean = view_f32(&call->result[1], "layer_norm");
    f.rstd = view_f32(&call->result[2], "layer_norm");
    forward("layer_norm", call, f);
}

void ht_rms_norm_kernel(const ht_call *call) {
    Forward f = {};
    f.weight = view_f32(&call->operand[1], "rms_norm");
    f.rstd = view_f32(&call->result[1], "rms_norm");
    forward("rms_norm", call, f);
}

void ht_l2_norm_kernel(const ht_call *call) {
    Forward f = {};
    f.rstd = view_f32(&call->result[1], "l2_norm");
    f.length = 1;
    forward("l2_norm", call, f);
}

/* ---- backward ---- */

/* Operands and results of backward. mean is NULL for norms that do not subtract it; weight is a
 * vector or NULL. `part` has the sums of each block over its rows: n numbers for dweight, then n
 * for dbias unless dbias is NULL. */
typedef struct Backward {
    void *dx;
    const void *dy, *x, *more; // more: added to dx; may be NULL
    const float *mean, *rstd, *weight;
    float *part, *dweight, *dbias;
} Backward;

/* Returns the address at which the sums of this block begin. */
static __device__ inline float *block_part(const Backward &b, const Team &team) {
    return b.part + (int64_t)blockIdx.x * (b.dbias ? 2 : 1) * team.n;
}

enum { OF_WEIGHT, OF_BIAS }; // sums for dweight, sums for dbias

template <int V> constexpr int SUM_WIDTH = V < 4 ? V : 4;

/* Returns the address of a thread's column sums from element e on, for dweight or dbias, if a row
 * is one tile. The sums are in shared memory, since rows take all registers. Columns are stored in
 * groups as wide as one vector load; the groups of all threads lie side by side. */
template <int V> static __device__ inline float *column_sums(int which, int e, unsigned team) {
    constexpr int WIDTH = SUM_WIDTH<V>;
    HT_SHARED(float, shared); // [2][TEAM_ELEMENTS / WIDTH][threads of the block][WIDTH]
    const unsigned thread = team * blockDim.x + threadIdx.x, threads = blockDim.x * blockDim.y;
    return shared +
           ((unsigned)(which * (TEAM_ELEMENTS / WIDTH) + e / WIDTH) * threads + thread) * WIDTH;
}

/* Returns the bytes of a block's column sums; 0 if a row has several tiles. */
static size_t column_sums_bytes(const Team &team, bool biased) {
    const size_t of_thread = TEAM_ELEMENTS * sizeof(float) * (biased ? 2 : 1);
    return team.tiles == 1 ? of_thread * (size_t)(team.warps * team.teams * HT_WARP) : 0;
}

template <int N> static __device__ inline void store_sums(float *to, const float (&from)[N]) {
    ht_lanes<float, N> lanes;
    CUDA_UNROLL
    for (int e = 0; e < N; e++) lanes.at[e] = from[e];
    *reinterpret_cast<ht_lanes<float, N> *>(to) = lanes;
}

template <int V> static __device__ inline void clear_columns(int which) {
    const float zero[SUM_WIDTH<V>] = {};
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e += SUM_WIDTH<V>)
        store_sums(column_sums<V>(which, e, threadIdx.y), zero);
}

/* Adds term(e) to the sum of each column. */
template <int V, typename Term> static __device__ inline void add_column(int which, Term term) {
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e += SUM_WIDTH<V>) {
        float sum[SUM_WIDTH<V>], *at = column_sums<V>(which, e, threadIdx.y);
        ht_load(sum, at);
        CUDA_UNROLL
        for (int i = 0; i < SUM_WIDTH<V>; i++) sum[i] += term(e + i);
        store_sums(at, sum);
    }
}

template <int V, bool LONG>
static __device__ inline void add_columns(const Backward &b, const Team &team, int64_t tile,
                                          const float (&dy)[TEAM_ELEMENTS],
                                          const float (&normal)[TEAM_ELEMENTS]) {
    if (!LONG) {
        add_column<V>(OF_WEIGHT, [&](int e) { return dy[e] * normal[e]; });
        if (b.dbias) add_column<V>(OF_BIAS, [&](int e) { return dy[e]; });
        return;
    }
    float *part = block_part(b, team);
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e++) {
        const int64_t column = team_column<V>(tile, e);
        if (column >= team.n) continue;
        part[column] += dy[e] * normal[e];
        if (b.dbias) part[team.n + column] += dy[e];
    }
}

/* Loads dy and the normalised x of a tile. */
template <typename T, int V>
static __device__ inline void load_pair(float (&dy)[TEAM_ELEMENTS], float (&normal)[TEAM_ELEMENTS],
                                        const Backward &b, const TeamRow &row, int64_t tile,
                                        float mean, float rstd) {
    team_load<V>(dy, static_cast<const T *>(b.dy), row, tile, 0);
    team_load<V>(normal, static_cast<const T *>(b.x), row, tile, mean);
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e++) normal[e] = (normal[e] - mean) * rstd;
}

/* Computes t = dy * weight, in place. */
template <int V>
static __device__ inline void weigh(float (&dy)[TEAM_ELEMENTS], const Backward &b,
                                    const TeamRow &row, int64_t tile) {
    float weight[TEAM_ELEMENTS];
    team_load_shared<V>(weight, b.weight, row, tile, 1);
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e++) dy[e] *= weight[e];
}

/* Computes dx = rstd * (t - m0 - normal * m1) for t = dy * weight. m1 is the mean of t * normal. m0
 * is the mean of t if the mean was subtracted, else 0. LONG: a row has several tiles. */
template <typename T, int V, bool LONG>
static __device__ inline void backward_row(const Backward &b, const Team &team,
                                           const TeamRow &row) {
    float t[TEAM_ELEMENTS] = {}, normal[TEAM_ELEMENTS] = {}, m[2] = {0, 0};
    const float mean = b.mean && row.n ? b.mean[row.number] : 0,
                rstd = row.n ? b.rstd[row.number] : 0;
    const int64_t tiles = LONG ? team.tiles : 1;
    for (int64_t tile = 0; tile < tiles; tile++) {
        load_pair<T, V>(t, normal, b, row, tile, mean, rstd);
        add_columns<V, LONG>(b, team, tile, t, normal);
        weigh<V>(t, b, row, tile);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) {
            m[0] += t[e];
            m[1] += t[e] * normal[e];
        }
    }
    team_sum(m);
    const float m0 = b.mean ? m[0] / (float)team.n : 0, m1 = m[1] / (float)team.n;
    for (int64_t tile = 0; tile < tiles; tile++) {
        if (LONG) {
            load_pair<T, V>(t, normal, b, row, tile, mean, rstd);
            weigh<V>(t, b, row, tile);
        }
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) t[e] = rstd * (t[e] - m0 - normal[e] * m1);
        if (b.more) {
            team_load<V>(normal, static_cast<const T *>(b.more), row, tile, 0);
            CUDA_UNROLL
            for (int e = 0; e < TEAM_ELEMENTS; e++) t[e] += normal[e];
        }
        team_store<V>(static_cast<T *>(b.dx), t, row, tile);
    }
}

/* Sums the column sums of a block's teams in order, and writes the totals to the block's part. */
template <int V>
static __device__ inline void join_teams(const Team &team, int which, float *part) {
    const TeamRow vector = {0, 0, team.n};
    float sums[TEAM_ELEMENTS] = {};
    for (unsigned other = 0; other < blockDim.y; other++) {
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e += SUM_WIDTH<V>) {
            float sum[SUM_WIDTH<V>];
            ht_load(sum, column_sums<V>(which, e, other));
            CUDA_UNROLL
            for (int i = 0; i < SUM_WIDTH<V>; i++) sums[e + i] += sum[i];
        }
    }
    team_store<V>(part, sums, vector, 0);
}

/* ---- the sums of all blocks ---- */

enum {
    JOIN_GROUP = 16,  // least blocks of a group, except the last group (join_blocks)
    JOIN_GROUPS = 256 // most groups of blocks
};

/* The number of arrived blocks of each group, then the number of complete groups. All numbers are 0
 * between kernels, which run one after another. */
static __device__ unsigned join_arrived[JOIN_GROUPS + 1];

/* Returns whether this block is the last of `count` to arrive; the last one may read all earlier
 * writes of the other blocks. All threads call this. */
static __device__ inline bool last_to_come(unsigned *arrived, unsigned count) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicInc(arrived, count - 1) == count - 1;
    __syncthreads();
    __threadfence();
    return last;
}

/* Returns the sum of `count` numbers that are `step` apart, in order. */
static __device__ inline float sum_of_parts(const float *part, int64_t count, int64_t step) {
    float sum = 0;
    for (int64_t p = 0; p < count; p++) sum += part[p * step];
    return sum;
}

/* Sums the parts of all blocks in a fixed order. The last block of each group sums the group's
 * parts into its first part; the last block of all sums these first parts. */
static __device__ inline void join_blocks(const Backward &b, const Team &team) {
    const unsigned size = max((unsigned)JOIN_GROUP, (gridDim.x + JOIN_GROUPS - 1) / JOIN_GROUPS);
    const unsigned groups = (gridDim.x + size - 1) / size, group = blockIdx.x / size,
                   members = min(size, gridDim.x - group * size);
    const int64_t length = (b.dbias ? 2 : 1) * team.n,
                  thread = threadIdx.y * blockDim.x + threadIdx.x,
                  threads = blockDim.x * blockDim.y;
    float *first = b.part + (int64_t)group * size * length;
    if (!last_to_come(&join_arrived[group], members)) return;
    for (int64_t column = thread; column < length; column += threads)
        first[column] = sum_of_parts(first + column, members, length);
    if (!last_to_come(&join_arrived[JOIN_GROUPS], groups)) return;
    for (int64_t column = thread; column < length; column += threads)
        (column < team.n ? b.dweight + column : b.dbias + column - team.n)[0] =
            sum_of_parts(b.part + column, groups, size * length);
}

/* Computes all gradients. THREADS: size of the largest block; a smaller one allows more blocks. */
template <typename T, int V, bool LONG, int THREADS>
__global__ void __launch_bounds__(THREADS, BACKWARD_THREADS / THREADS)
    norm_backward_device(Backward b, Team team) {
    float *part = block_part(b, team);
    const int64_t length = (b.dbias ? 2 : 1) * team.n;
    for (int64_t i = threadIdx.x; LONG && i < length; i += blockDim.x) part[i] = 0;
    if (!LONG) clear_columns<V>(OF_WEIGHT);
    if (!LONG && b.dbias) clear_columns<V>(OF_BIAS);
    __syncthreads();
    for (int64_t first = team_first(); first < team.rows; first += team_step())
        backward_row<T, V, LONG>(b, team, team_row(team, first));
    __syncthreads();
    if (!LONG && threadIdx.y == 0) {
        join_teams<V>(team, OF_WEIGHT, part);
        if (b.dbias) join_teams<V>(team, OF_BIAS, part + team.n);
    }
    join_blocks(b, team);
}

static void backward(const char *name, const ht_view *dx, const ht_view *dy, const ht_view *x,
                     const ht_view *more, Backward b) {
    const int64_t n = view_columns(x), length = (b.dbias ? 2 : 1) * n;
    const Team team = team_of(view_rows(x), n);
    if (n == 0) return;
    const dim3 threads = team_threads(team),
               blocks = team_blocks(team, BACKWARD_THREADS / (int)(threads.x * threads.y));
    const size_t shared = column_sums_bytes(team, b.dbias);
    if (team.rows == 0) {
        HT_CUDA(cudaMemsetAsync(b.dweight, 0, (size_t)n * sizeof(float), ht_compute_stream()));
        if (b.dbias)
            HT_CUDA(cudaMemsetAsync(b.dbias, 0, (size_t)n * sizeof(float), ht_compute_stream()));
        return;
    }
    b.dx = dx->data;
    b.dy = dy->data;
    b.x = x->data;
    b.more = more->data;
    b.part = static_cast<float *>(cuda_scratch(blocks.x * length * (int64_t)sizeof(float)));
    with_vectors(name, n, {dx, dy, x, more}, {b.weight}, [&]<typename T, int V>() {
        void (*kernel)(Backward, Team) = norm_backward_device<T, V, true, TEAM_MOST_THREADS>;
        if (team.tiles == 1) kernel = norm_backward_device<T, V, false, TEAM_MOST_THREADS>;
        if (V > 1 && team.tiles == 1 && threads.x * threads.y <= TEAM_FEW_THREADS)
            kernel =
                norm_backward_device<T, V, false, (V > 1 ? TEAM_FEW_THREADS : TEAM_MOST_THREADS)>;
        ht_launch(kernel, blocks, threads, shared, b, team);
    });
}

void ht_layer_norm_backward_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {};
    b.mean = view_f32(&in[2], "layer_norm");
    b.rstd = view_f32(&in[3], "layer_norm");
    b.weight = view_f32(&in[4], "layer_norm");
    b.dweight = view_f32(&out[1], "layer_norm");
    b.dbias = view_f32(&out[2], "layer_norm");
    backward("layer_norm", &out[0], &in[0], &in[1], &in[5], b);
}

void ht_rms_norm_backward_kernel(const ht_call *call) {
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {};
    b.rstd = view_f32(&in[2], "rms_norm");
    b.weight = view_f32(&in[3], "rms_norm");
    b.dweight = view_f32(&out[1], "rms_norm");
    backward("rms_norm", &out[0], &in[0], &in[1], &in[4], b);
}

/* Computes dx = rnorm * (dy - y * (dy . y)), or dx = rnorm * dy if the length was below eps. */
struct LengthGradient {
    const float *rnorm;
    float eps, largest; // largest: 1 / eps, the value of rnorm if the length was below eps

    __device__ float operator()(float dy, float y, float dot, int64_t row) const {
        return rnorm[row] * (dy - (rnorm[row] >= largest ? 0 : y * dot));
    }
};

void ht_l2_norm_backward_kernel(const ht_call *call) {
    const ht_view *dx = &call->result[0], *dy = &call->operand[0], *y = &call->operand[1];
    const LengthGradient gradient = {view_f32(&call->operand[2], "l2_norm"), (float)call->attr[0].f,
                                     1.0f / (float)call->attr[0].f};
    const Team team = team_of(view_rows(dy), view_columns(dy));
    if (team.rows == 0 || team.n == 0) return;
    with_vectors("l2_norm", team.n, {dx, dy, y}, {}, [&]<typename T, int V>() {
        ht_launch(team_dot_device<T, V, LengthGradient>, team_blocks(team, FORWARD_BLOCKS),
                  team_threads(team), 0, static_cast<T *>(dx->data),
                  static_cast<const T *>(dy->data), static_cast<const T *>(y->data), team,
                  gradient);
    });
}
