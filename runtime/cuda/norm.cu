/* Layer, root-mean-square and length normalisation over the last dimension. */
#include "core/kernels.h"
#include "cuda/team.h"

enum { FORWARD_BLOCKS = 8, BACKWARD_BLOCKS = 2 }; // of a multiprocessor

/* What a forward works on: mean NULL where it is not subtracted, weight and bias NULL or vectors. */
typedef struct Forward {
    const void *x;
    void *y;
    const float *weight, *bias;
    float *mean, *rstd;
    float eps;
    int length; // rstd is 1 / max(length, eps) instead of 1 / sqrt(mean of squares + eps)
} Forward;

/* The sum over a row, and the sum of its squares around `mean`; x holds the last tile. */
template <typename T, int V>
static __device__ inline float row_mean(float (&x)[TEAM_ELEMENTS], const Forward &f, const Team &team, const TeamRow &row)
{
    float sum[1] = {0};
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        team_load<V>(x, static_cast<const T *>(f.x), row, tile, 0);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            sum[0] += x[e];
    }
    if (!f.mean)
        return 0;
    team_sum(sum);
    return sum[0] / (float)team.n;
}

template <typename T, int V>
static __device__ inline float row_squares(float (&x)[TEAM_ELEMENTS], const Forward &f, const Team &team, const TeamRow &row, float mean)
{
    float sum[1] = {0};
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1)
            team_load<V>(x, static_cast<const T *>(f.x), row, tile, mean);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            sum[0] += team_column<V>(tile, e) < row.n ? (x[e] - mean) * (x[e] - mean) : 0;
    }
    team_sum(sum);
    return sum[0];
}

/* One row of a team: one pass over memory where the row fits into registers. */
template <typename T, int V> static __device__ inline void forward_row(const Forward &f, const Team &team, const TeamRow &row)
{
    float x[TEAM_ELEMENTS] = {}, weight[TEAM_ELEMENTS], bias[TEAM_ELEMENTS];
    const float mean = row_mean<T, V>(x, f, team, row), squares = row_squares<T, V>(x, f, team, row, mean);
    const float rstd = 1.0f / (f.length ? fmaxf(sqrtf(squares), f.eps) : sqrtf(squares / (float)team.n + f.eps));
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1)
            team_load<V>(x, static_cast<const T *>(f.x), row, tile, 0);
        team_load_shared<V>(weight, f.weight, row, tile, 1);
        team_load_shared<V>(bias, f.bias, row, tile, 0);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            x[e] = (x[e] - mean) * rstd * weight[e] + bias[e];
        team_store<V>(static_cast<T *>(f.y), x, row, tile);
    }
    if (threadIdx.x == 0 && row.n > 0) {
        f.rstd[row.number] = rstd;
        if (f.mean)
            f.mean[row.number] = mean;
    }
}

template <typename T, int V> __global__ void __launch_bounds__(TEAM_MOST_THREADS) norm_device(Forward f, Team team)
{
    for (int64_t first = team_first(); first < team.rows; first += team_step())
        forward_row<T, V>(f, team, team_row(team, first));
}

static void forward(const char *name, const ht_call *call, Forward f)
{
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const int64_t n = view_columns(x);
    f.x = x->data;
    f.y = y->data;
    f.eps = (float)call->attr[0].f;
    const Team team = team_of(view_rows(x), n);
    if (team.rows == 0 || n == 0)
        return;
    with_vectors(name, n, {x, y}, {f.weight, f.bias}, [&]<typename T, int V>() {
        ht_launch(norm_device<T, V>, team_blocks(team, FORWARD_BLOCKS), team_threads(team), 0, f, team);
    });
}

void ht_layer_norm_kernel(const ht_call *call)
{
    Forward f = {};
    f.weight = view_f32(&call->operand[1], "layer_norm");
    f.bias = view_f32(&call->operand[2], "layer_norm");
    f.mean = view_f32(&call->result[1], "layer_norm");
    f.rstd = view_f32(&call->result[2], "layer_norm");
    forward("layer_norm", call, f);
}

void ht_rms_norm_kernel(const ht_call *call)
{
    Forward f = {};
    f.weight = view_f32(&call->operand[1], "rms_norm");
    f.rstd = view_f32(&call->result[1], "rms_norm");
    forward("rms_norm", call, f);
}

void ht_l2_norm_kernel(const ht_call *call)
{
    Forward f = {};
    f.rstd = view_f32(&call->result[1], "l2_norm");
    f.length = 1;
    forward("l2_norm", call, f);
}

/* ---- backward ---- */

/* What a backward works on: mean NULL where it was not subtracted, weight NULL or a vector. `part` has for each block the sums of its rows:
 * n numbers for dweight, then n for dbias where there is one. */
typedef struct Backward {
    void *dx;
    const void *dy, *x;
    const float *mean, *rstd, *weight;
    float *part, *dweight, *dbias;
} Backward;

/* What a thread has added up of its columns: in registers where a row is one tile, else in `part`. */
typedef struct ColumnSums {
    float weight[TEAM_ELEMENTS], bias[TEAM_ELEMENTS];
} ColumnSums;

/* Where the sums of this block begin. */
static __device__ inline float *block_part(const Backward &b, const Team &team)
{
    return b.part + (int64_t)blockIdx.x * (b.dbias ? 2 : 1) * team.n;
}

template <int V>
static __device__ inline void add_columns(ColumnSums &sums, const Backward &b, const Team &team, int64_t tile,
                                          const float (&dy)[TEAM_ELEMENTS], const float (&normal)[TEAM_ELEMENTS])
{
    float *part = block_part(b, team);
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e++) {
        const int64_t column = team_column<V>(tile, e);
        sums.weight[e] += dy[e] * normal[e];
        sums.bias[e] += dy[e];
        if (team.tiles == 1 || column >= team.n)
            continue;
        part[column] += dy[e] * normal[e];
        if (b.dbias)
            part[team.n + column] += dy[e];
    }
}

/* dy and the normalised x of a tile. */
template <typename T, int V>
static __device__ inline void load_pair(float (&dy)[TEAM_ELEMENTS], float (&normal)[TEAM_ELEMENTS], const Backward &b, const TeamRow &row,
                                        int64_t tile, float mean, float rstd)
{
    team_load<V>(dy, static_cast<const T *>(b.dy), row, tile, 0);
    team_load<V>(normal, static_cast<const T *>(b.x), row, tile, mean);
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e++)
        normal[e] = (normal[e] - mean) * rstd;
}

/* With t = dy * weight: dx = rstd * (t - m0 - normal * m1), where m1 is the mean of t * normal, and m0 the mean of t where the mean was
 * subtracted, else 0. */
template <typename T, int V>
static __device__ inline void backward_row(ColumnSums &sums, const Backward &b, const Team &team, const TeamRow &row)
{
    float dy[TEAM_ELEMENTS] = {}, normal[TEAM_ELEMENTS] = {}, weight[TEAM_ELEMENTS] = {}, m[2] = {0, 0};
    const float mean = b.mean && row.n ? b.mean[row.number] : 0, rstd = row.n ? b.rstd[row.number] : 0;
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        load_pair<T, V>(dy, normal, b, row, tile, mean, rstd);
        team_load_shared<V>(weight, b.weight, row, tile, 1);
        add_columns<V>(sums, b, team, tile, dy, normal);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) {
            m[0] += dy[e] * weight[e];
            m[1] += dy[e] * weight[e] * normal[e];
        }
    }
    team_sum(m);
    const float m0 = b.mean ? m[0] / (float)team.n : 0, m1 = m[1] / (float)team.n;
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1) {
            load_pair<T, V>(dy, normal, b, row, tile, mean, rstd);
            team_load_shared<V>(weight, b.weight, row, tile, 1);
        }
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            dy[e] = rstd * (dy[e] * weight[e] - m0 - normal[e] * m1);
        team_store<V>(static_cast<T *>(b.dx), dy, row, tile);
    }
}

/* Adds up the sums of a block's teams in order, and writes them to the block's part. */
template <int V> static __device__ inline void join_teams(ColumnSums &sums, const Backward &b, const Team &team)
{
    HT_SHARED(float, shared); // [2][TEAM_ELEMENTS][threads of a team]
    float *weight = shared + threadIdx.x, *bias = weight + TEAM_ELEMENTS * blockDim.x;
    for (unsigned other = 1; other < blockDim.y; other++) {
        __syncthreads();
        if (threadIdx.y == other)
            for (int e = 0; e < TEAM_ELEMENTS; e++) {
                weight[e * blockDim.x] = sums.weight[e];
                bias[e * blockDim.x] = sums.bias[e];
            }
        __syncthreads();
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) {
            sums.weight[e] += threadIdx.y == 0 ? weight[e * blockDim.x] : 0;
            sums.bias[e] += threadIdx.y == 0 ? bias[e * blockDim.x] : 0;
        }
    }
    const TeamRow vector = {0, 0, threadIdx.y == 0 ? team.n : 0};
    float *part = block_part(b, team);
    team_store<V>(part, sums.weight, vector, 0);
    if (b.dbias)
        team_store<V>(part + team.n, sums.bias, vector, 0);
}

template <typename T, int V> __global__ void __launch_bounds__(TEAM_MOST_THREADS) norm_backward_device(Backward b, Team team)
{
    ColumnSums sums = {};
    float *part = block_part(b, team);
    const int64_t length = (b.dbias ? 2 : 1) * team.n;
    if (team.tiles > 1) {
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
            part[i] = 0;
        __syncthreads();
    }
    for (int64_t first = team_first(); first < team.rows; first += team_step())
        backward_row<T, V>(sums, b, team, team_row(team, first));
    if (team.tiles == 1)
        join_teams<V>(sums, b, team);
}

/* Adds up the parts of all blocks in order: to[i] = sum of part[p][i]. Blocks of HT_WARP columns by HT_MOST_WARPS parts. */
__global__ void join_parts_device(float *dweight, float *dbias, const float *part, int64_t parts, int64_t n)
{
    const int64_t length = (dbias ? 2 : 1) * n, column = (int64_t)blockIdx.x * HT_WARP + threadIdx.x;
    float sum[1] = {0};
    for (int64_t p = threadIdx.y; p < parts && column < length; p += HT_MOST_WARPS)
        sum[0] += part[p * length + column];
    ht_rows_sum(sum);
    if (threadIdx.y != 0 || column >= length)
        return;
    if (column < n)
        dweight[column] = sum[0];
    else
        dbias[column - n] = sum[0];
}

static void backward(const char *name, const ht_view *dx, const ht_view *dy, const ht_view *x, Backward b)
{
    const int64_t n = view_columns(x), length = (b.dbias ? 2 : 1) * n;
    const Team team = team_of(view_rows(x), n);
    if (n == 0)
        return;
    const dim3 blocks = team_blocks(team, BACKWARD_BLOCKS), threads = team_threads(team);
    const size_t shared = team.teams > 1 ? 2 * TEAM_ELEMENTS * threads.x * sizeof(float) : 0;
    const int64_t parts = team.rows > 0 ? blocks.x : 0;
    b.dx = dx->data;
    b.dy = dy->data;
    b.x = x->data;
    b.part = static_cast<float *>(cuda_scratch(parts * length * (int64_t)sizeof(float)));
    if (parts)
        with_vectors(name, n, {dx, dy, x}, {b.weight},
                     [&]<typename T, int V>() { ht_launch(norm_backward_device<T, V>, blocks, threads, shared, b, team); });
    ht_launch(join_parts_device, ht_blocks(length, HT_WARP), dim3(HT_WARP, HT_MOST_WARPS), 0, b.dweight, b.dbias, b.part, parts, n);
}

void ht_layer_norm_backward_kernel(const ht_call *call)
{
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {};
    b.mean = view_f32(&in[2], "layer_norm");
    b.rstd = view_f32(&in[3], "layer_norm");
    b.weight = view_f32(&in[4], "layer_norm");
    b.dweight = view_f32(&out[1], "layer_norm");
    b.dbias = view_f32(&out[2], "layer_norm");
    backward("layer_norm", &out[0], &in[0], &in[1], b);
}

void ht_rms_norm_backward_kernel(const ht_call *call)
{
    const ht_view *in = call->operand, *out = call->result;
    Backward b = {};
    b.rstd = view_f32(&in[2], "rms_norm");
    b.weight = view_f32(&in[3], "rms_norm");
    b.dweight = view_f32(&out[1], "rms_norm");
    backward("rms_norm", &out[0], &in[0], &in[1], b);
}

/* dx = rnorm * (dy - y * (dy . y)); where the length was below eps, dx = rnorm * dy. */
struct LengthGradient {
    const float *rnorm;
    float eps, largest; // 1 / eps: what rnorm is where the length was below eps

    __device__ float operator()(float dy, float y, float dot, int64_t row) const
    {
        return rnorm[row] * (dy - (rnorm[row] >= largest ? 0 : y * dot));
    }
};

void ht_l2_norm_backward_kernel(const ht_call *call)
{
    const ht_view *dx = &call->result[0], *dy = &call->operand[0], *y = &call->operand[1];
    const LengthGradient gradient = {view_f32(&call->operand[2], "l2_norm"), (float)call->attr[0].f, 1.0f / (float)call->attr[0].f};
    const Team team = team_of(view_rows(dy), view_columns(dy));
    if (team.rows == 0 || team.n == 0)
        return;
    with_vectors("l2_norm", team.n, {dx, dy, y}, {}, [&]<typename T, int V>() {
        ht_launch(team_dot_device<T, V, LengthGradient>, team_blocks(team, FORWARD_BLOCKS), team_threads(team), 0,
                  static_cast<T *>(dx->data), static_cast<const T *>(dy->data), static_cast<const T *>(y->data), team, gradient);
    });
}
