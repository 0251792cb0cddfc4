/* Softmax over rows. team.h shares rows among warps and blocks. */
#include "operators/kernels.h"
#include "cuda/team.h"

enum { SOFTMAX_BLOCKS = 8 }; // blocks for each multiprocessor

template <typename T, int V>
static __device__ inline float row_peak(float (&x)[TEAM_ELEMENTS], const T *from, const Team &team,
                                        const TeamRow &row) {
    float peak = -INFINITY;
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        team_load<V>(x, from, row, tile, -INFINITY);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) peak = larger(peak, x[e]);
    }
    return team_max(peak);
}

template <typename T, int V>
static __device__ inline void softmax_row(T *y, const T *from, const Team &team,
                                          const TeamRow &row) {
    float x[TEAM_ELEMENTS] = {}, sum[1] = {0};
    const float peak = row_peak<T, V>(x, from, team, row);
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1) team_load<V>(x, from, row, tile, -INFINITY);
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++)
            sum[0] += x[e] = team_column<V>(tile, e) < row.n ? expf(x[e] - peak) : 0;
    }
    team_sum(sum);
    const float scale = 1.0f / sum[0];
    for (int64_t tile = 0; tile < team.tiles; tile++) {
        if (team.tiles > 1) {
            team_load<V>(x, from, row, tile, -INFINITY);
            CUDA_UNROLL
            for (int e = 0; e < TEAM_ELEMENTS; e++) x[e] = expf(x[e] - peak);
        }
        CUDA_UNROLL
        for (int e = 0; e < TEAM_ELEMENTS; e++) x[e] *= scale;
        team_store<V>(y, x, row, tile);
    }
}

template <typename T, int V>
__global__ void __launch_bounds__(TEAM_MOST_THREADS) softmax_device(T *y, const T *x, Team team) {
    for (int64_t first = team_first(); first < team.rows; first += team_step())
        softmax_row<T, V>(y, x, team, team_row(team, first));
}

void ht_softmax_kernel(const ht_call *call) {
    const ht_view *y = &call->result[0], *x = &call->operand[0];
    const Team team = team_of(view_rows(x), view_columns(x));
    if (team.rows == 0 || team.n == 0) return;
    with_vectors("softmax", team.n, {y, x}, {}, [&]<typename T, int V>() {
        ht_launch(softmax_device<T, V>, team_blocks(team, SOFTMAX_BLOCKS), team_threads(team), 0,
                  static_cast<T *>(y->data), static_cast<const T *>(x->data), team);
    });
}

/* Computes dx = y * (dy - dy . y). */
struct SoftmaxGradient {
    __device__ float operator()(float dy, float y, float dot, int64_t) const {
        return y * (dy - dot);
    }
};

void ht_softmax_backward_kernel(const ht_call *call) {
    const ht_view *dx = &call->result[0], *dy = &call->operand[0], *y = &call->operand[1];
    const Team team = team_of(view_rows(dy), view_columns(dy));
    if (team.rows == 0 || team.n == 0) return;
    with_vectors("softmax_backward", team.n, {dx, dy, y}, {}, [&]<typename T, int V>() {
        ht_launch(team_dot_device<T, V, SoftmaxGradient>, team_blocks(team, SOFTMAX_BLOCKS),
                  team_threads(team), 0, static_cast<T *>(dx->data),
                  static_cast<const T *>(dy->data), static_cast<const T *>(y->data), team,
                  SoftmaxGradient());
    });
}
