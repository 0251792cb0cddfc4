/* team.h: teams of warps that process the rows of a matrix. Each thread holds TEAM_ELEMENTS
 * elements of a row in registers, V neighbours at a time. A row that is longer than a team can hold
 * is processed in several tiles, and read again for each pass.
 *
 *     Team team = team_of(rows, n);
 *     ht_launch(work_device<T, V>, team_blocks(team, 8), team_threads(team), 0, ..., team);
 *
 *     // all threads of a block make the same number of iterations
 *     for (int64_t first = team_first(); first < team.rows; first += team_step()) {
 *         const TeamRow row = team_row(team, first);
 *         float x[TEAM_ELEMENTS], sum[1] = {0};
 *         for (int64_t tile = 0; tile < team.tiles; tile++) {
 *             team_load<V>(x, from, row, tile, 0);
 *             ...
 *         }
 *         team_sum(sum);
 *     }
 */
#pragma once

#include "cuda/views.h"

enum {
    TEAM_ELEMENTS = 16,                            // elements of a row in registers of a thread
    TEAM_BLOCK_WARPS = 8,                          // warps of a block with several teams
    TEAM_MOST_WARPS = 16,                          // most warps of a team
    TEAM_WARP_ELEMENTS = HT_WARP * TEAM_ELEMENTS,  // elements of a row that a warp holds
    TEAM_MOST_THREADS = TEAM_MOST_WARPS * HT_WARP, // most threads of a block
    TEAM_FEW_THREADS = TEAM_BLOCK_WARPS * HT_WARP  // threads of a block with several teams
};

typedef struct Team {
    int64_t rows, n;  // rows of the matrix; elements of a row
    int warps, teams; // warps of a team, teams of a block
    int64_t tiles;    // tiles of a row
} Team;

static inline Team team_of(int64_t rows, int64_t n) {
    Team team = {rows, n, 1, 1, 1};
    while (team.warps < TEAM_MOST_WARPS && team.warps * TEAM_WARP_ELEMENTS < n) team.warps *= 2;
    if (team.warps < TEAM_BLOCK_WARPS) team.teams = TEAM_BLOCK_WARPS / team.warps;
    int64_t tile = team.warps * TEAM_WARP_ELEMENTS;
    team.tiles = (n + tile - 1) / tile;
    return team;
}

/* Returns the grid: at most `resident` blocks per multiprocessor; each block loops over rows. */
static inline dim3 team_blocks(const Team &team, int resident) {
    int64_t blocks = (team.rows + team.teams - 1) / team.teams,
            most = (int64_t)resident * cuda_processors();
    return dim3((unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks));
}

static inline dim3 team_threads(const Team &team) {
    return dim3((unsigned)(team.warps * HT_WARP), (unsigned)team.teams);
}

/* Calls work.operator()<T, V>(). T is the type in which the views are stored. V neighbours fill 16
 * bytes if all rows of `n` elements and all `vectors` (of f32) begin at multiples of 16 bytes; else
 * V is 1. */
template <typename Work>
static inline void with_vectors(const char *name, int64_t n,
                                std::initializer_list<const ht_view *> views,
                                std::initializer_list<const void *> vectors, Work work) {
    with_float(name, views, [&]<typename T>() {
        bool aligned = n * (int64_t)sizeof(T) % 16 == 0 && aligned_to(16, vectors);
        for (const ht_view *view : views) aligned = aligned && aligned_to(16, {view->data});
        if (aligned) work.template operator()<T, VECTOR_OF<T>>();
        else work.template operator()<T, 1>();
    });
}

/* ---- on the device ---- */

/* A row that a team processes: number, first element, number of elements (0: no row). */
typedef struct TeamRow {
    int64_t number, start, n;
} TeamRow;

/* Return the block's first row, and the rows by which the block advances in an iteration. */
static __device__ inline int64_t team_first(void) { return (int64_t)blockIdx.x * blockDim.y; }
static __device__ inline int64_t team_step(void) { return (int64_t)gridDim.x * blockDim.y; }

static __device__ inline TeamRow team_row(const Team &team, int64_t first) {
    int64_t row = first + threadIdx.y;
    TeamRow none = {0, 0, 0}, some = {row, row * team.n, team.n};
    return row < team.rows ? some : none;
}

/* Returns the column of this thread's element e. */
template <int V> static __device__ inline int64_t team_column(int64_t tile, int e) {
    return ((tile * (TEAM_ELEMENTS / V) + e / V) * blockDim.x + threadIdx.x) * V + e % V;
}

/* Loads a thread's elements of a tile; elements beyond the row's end become `fill`. */
template <int V, typename T>
static __device__ inline void team_load(float (&to)[TEAM_ELEMENTS], const T *from,
                                        const TeamRow &row, int64_t tile, float fill) {
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e += V) {
        float vector[V];
        int64_t column = team_column<V>(tile, e);
        if (column < row.n) ht_load(vector, from + row.start + column);
        CUDA_UNROLL
        for (int v = 0; v < V; v++) to[e + v] = column < row.n ? vector[v] : fill;
    }
}

template <int V, typename T>
static __device__ inline void team_store(T *to, const float (&from)[TEAM_ELEMENTS],
                                         const TeamRow &row, int64_t tile) {
    CUDA_UNROLL
    for (int e = 0; e < TEAM_ELEMENTS; e += V) {
        float vector[V];
        int64_t column = team_column<V>(tile, e);
        CUDA_UNROLL
        for (int v = 0; v < V; v++) vector[v] = from[e + v];
        if (column < row.n) ht_store(to + row.start + column, vector);
    }
}

/* Loads a thread's elements of a vector that all rows share, or `fill` if the vector is absent. */
template <int V>
static __device__ inline void team_load_shared(float (&to)[TEAM_ELEMENTS], const float *from,
                                               const TeamRow &row, int64_t tile, float fill) {
    const TeamRow shared = {0, 0, from ? row.n : 0};
    team_load<V>(to, from, shared, tile, fill);
}

/* Reduces N numbers of each thread over its team, in a fixed order. Every thread of the team gets
 * the result. All threads of the block must call this. */
template <int N, typename Fold>
static __device__ inline void team_fold(float (&value)[N], Fold fold) {
    __shared__ float part[HT_WARP][N];
    CUDA_UNROLL
    for (int i = 0; i < N; i++) CUDA_UNROLL
    for (int distance = HT_WARP / 2; distance; distance /= 2)
        value[i] = fold(value[i], __shfl_xor_sync(0xffffffffu, value[i], distance));
    if (blockDim.x == HT_WARP) return;
    const unsigned warps = blockDim.x / HT_WARP, first = threadIdx.y * warps;
    __syncthreads();
    if (threadIdx.x % HT_WARP == 0)
        for (int i = 0; i < N; i++) part[first + threadIdx.x / HT_WARP][i] = value[i];
    __syncthreads();
    CUDA_UNROLL
    for (int i = 0; i < N; i++) {
        value[i] = part[first][i];
        for (unsigned w = 1; w < warps; w++) value[i] = fold(value[i], part[first + w][i]);
    }
}

template <int N> static __device__ inline void team_sum(float (&value)[N]) {
    team_fold(value, [](float a, float b) { return a + b; });
}

/* Returns the larger number; NaN if either number is NaN. */
static __device__ inline float larger(float a, float b) { return b <= a || a != a ? a : b; }

static __device__ inline float team_max(float value) {
    float top[1] = {value};
    team_fold(top, [](float a, float b) { return larger(a, b); });
    return top[0];
}

/* Computes dx = finish(dy, y, dot, row) with dot = dy . y: backward of softmax and L2 norm. */
template <typename T, int V, typename Finish>
__global__ void __launch_bounds__(TEAM_MOST_THREADS)
    team_dot_device(T *dx, const T *dy, const T *y, Team team, Finish finish) {
    for (int64_t first = team_first(); first < team.rows; first += team_step()) {
        const TeamRow row = team_row(team, first);
        float a[TEAM_ELEMENTS] = {}, b[TEAM_ELEMENTS] = {}, dot[1] = {0};
        for (int64_t tile = 0; tile < team.tiles; tile++) {
            team_load<V>(a, dy, row, tile, 0);
            team_load<V>(b, y, row, tile, 0);
            CUDA_UNROLL
            for (int e = 0; e < TEAM_ELEMENTS; e++) dot[0] += a[e] * b[e];
        }
        team_sum(dot);
        for (int64_t tile = 0; tile < team.tiles; tile++) {
            if (team.tiles > 1) {
                team_load<V>(a, dy, row, tile, 0);
                team_load<V>(b, y, row, tile, 0);
            }
            CUDA_UNROLL
            for (int e = 0; e < TEAM_ELEMENTS; e++) a[e] = finish(a[e], b[e], dot[0], row.number);
            team_store<V>(dx, a, row, tile);
        }
    }
}
