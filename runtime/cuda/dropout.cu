/* Dropout with the same random numbers as on CPUs, so that the same elements are dropped. */
#include "operators/kernels.h"
#include "base/philox.h"
#include "cuda/views.h"

enum { DROPOUT_THREADS = 256, BLOCK_NUMBERS = 4 }; // BLOCK_NUMBERS: numbers of a Philox block

/* A piece of a tensor as rows of elements that are also neighbours in the whole tensor. Dimensions
 * are merged if the piece has all of the inner one and one range of the outer one. `pitch` is the
 * distance of neighbours in the whole tensor; elements from `fold` on are `skip` further away.
 * Dimension 0 is the innermost; its pitch is 1. */
typedef struct PieceRows {
    int64_t rank;
    int64_t extent[HT_MAX_RANK + 1], pitch[HT_MAX_RANK + 1], fold[HT_MAX_RANK + 1],
        skip[HT_MAX_RANK + 1];
    int64_t start; // index of the piece's first element in the whole tensor
} PieceRows;

static PieceRows piece_rows(const ht_view *x) {
    PieceRows rows = {1, {1}, {1}, {0}, {0}, 0};
    int64_t pitch = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        const int64_t last = rows.rank - 1;
        rows.start += x->offset[d] * pitch;
        if (!x->gap[d] && rows.extent[last] * rows.pitch[last] == pitch) {
            rows.extent[last] *= x->extent[d];
        } else {
            rows.extent[rows.rank] = x->extent[d];
            rows.fold[rows.rank] = x->fold[d];
            rows.skip[rows.rank] = x->gap[d] * pitch;
            rows.pitch[rows.rank++] = pitch;
        }
        pitch *= x->global[d];
    }
    return rows;
}

/* Attributes of a call, as a kernel argument. */
typedef struct Dropout {
    int64_t stream;
    RandomDrop drop;
    const CudaStep *step;
} Dropout;

/* Returns the index in the whole tensor at which row r begins. */
static __device__ inline int64_t row_start(const PieceRows &rows, int64_t r) {
    int64_t start = rows.start;
    for (int64_t d = 1; d < rows.rank; d++) {
        const int64_t i = r % rows.extent[d];
        start += i * rows.pitch[d] + (i >= rows.fold[d] ? rows.skip[d] : 0);
        r /= rows.extent[d];
    }
    return start;
}

/* Draws the random bits of BLOCK_NUMBERS neighbours from element `first` of the whole tensor on. */
static __device__ inline void neighbours(uint32_t (&bits)[BLOCK_NUMBERS], uint64_t seed,
                                         uint64_t stream, uint64_t first) {
    const unsigned off = (unsigned)(first % BLOCK_NUMBERS);
    const RandomBlock low = random_block(seed, stream, first / BLOCK_NUMBERS);
    const RandomBlock high = off ? random_block(seed, stream, first / BLOCK_NUMBERS + 1) : low;
    uint32_t number[2 * BLOCK_NUMBERS];
    CUDA_UNROLL
    for (int e = 0; e < BLOCK_NUMBERS; e++) {
        number[e] = low.at[e];
        number[BLOCK_NUMBERS + e] = high.at[e];
    }
    CUDA_UNROLL
    for (unsigned shift = 1; shift < BLOCK_NUMBERS; shift *= 2) CUDA_UNROLL
    for (unsigned e = 0; e + shift < 2 * BLOCK_NUMBERS; e++)
        number[e] = off & shift ? number[e + shift] : number[e];
    CUDA_UNROLL
    for (int e = 0; e < BLOCK_NUMBERS; e++) bits[e] = number[e];
}

/* Applies dropout; a thread processes BLOCK_NUMBERS neighbours of a row, V at a time. */
template <typename T, int V>
__global__ void __launch_bounds__(DROPOUT_THREADS)
    dropout_device(T *y, const T *x, int64_t count, PieceRows rows, Dropout d) {
    const int64_t n = rows.extent[0], groups = (n + BLOCK_NUMBERS - 1) / BLOCK_NUMBERS,
                  total = count / n * groups;
    const bool training = d.step->training;
    const uint64_t seed = d.step->seed, stream = random_stream_of_step(d.stream, d.step->step);
    for (int64_t i = ht_thread(); i < total; i += ht_threads()) {
        const int64_t r = i / groups, first = i % groups * BLOCK_NUMBERS;
        uint32_t bits[BLOCK_NUMBERS];
        neighbours(bits, seed, stream, (uint64_t)(row_start(rows, r) + first));
        CUDA_UNROLL
        for (int e = 0; e < BLOCK_NUMBERS; e += V) {
            float value[V];
            if (first + e >= n) break;
            ht_load(value, x + r * n + first + e);
            CUDA_UNROLL
            for (int v = 0; v < V; v++)
                value[v] = !training ? value[v]
                                     : value[v] * (bits[e + v] < d.drop.below ? 0 : d.drop.scale);
            ht_store(y + r * n + first + e, value);
        }
    }
}

/* Applies dropout. Attributes: the probability, the stream. */
void ht_dropout_kernel(const ht_call *call) {
    const ht_view *x = &call->operand[0], *y = &call->result[0];
    const double p = call->attr[0].f;
    const int64_t count = view_size(x);
    if (count == 0) return;
    const PieceRows rows = piece_rows(x);
    const Dropout d = {call->attr[1].i, random_drop(p > 0 ? p : 0), cuda_step()};
    const unsigned blocks = ht_blocks((count + BLOCK_NUMBERS - 1) / BLOCK_NUMBERS, DROPOUT_THREADS);
    with_float("dropout", {y, x}, [&]<typename T>() {
        T *to = static_cast<T *>(y->data);
        const T *from = static_cast<const T *>(x->data);
        if (rows.extent[0] % BLOCK_NUMBERS == 0 &&
            aligned_to(BLOCK_NUMBERS * sizeof(T), {to, from}))
            ht_launch(dropout_device<T, BLOCK_NUMBERS>, blocks, DROPOUT_THREADS, 0, to, from, count,
                      rows, d);
        else ht_launch(dropout_device<T, 1>, blocks, DROPOUT_THREADS, 0, to, from, count, rows, d);
    });
}
