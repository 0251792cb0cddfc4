/* Dropout. Philox's counter is the element's index in the whole tensor divided by four, with stream
 * and step; its key is the seed (base/random.h). So the layout does not change what is dropped. */
#include "base/random.h"
#include "cpu/cpu.h"
#include "operators/kernels.h"
#include "cpu/rows.h"

#include <hetu/rt.h>

#include <stdlib.h>
#include <string.h>

/* Returns the whole tensor's index of the first element of the row that has the piece's row r. */
static uint64_t row_start(const ht_view *x, int64_t r) {
    int last = x->rank - 1;
    uint64_t start = 0, pitch = last >= 0 ? (uint64_t)x->global[last] : 1;
    for (int d = last - 1; d >= 0; d--) {
        start += pitch * (uint64_t)ht_view_place(x, d, r % x->extent[d]);
        r /= x->extent[d];
        pitch *= (uint64_t)x->global[d];
    }
    return start;
}

/* Parameters of a dropout: its random numbers, and the view of its operand. */
typedef struct Dropout {
    uint64_t seed, stream;
    RandomDrop drop;
    const ht_view *view;
} Dropout;

/* Drops elements of n neighbours in the whole tensor, the first of which has index `start`. */
static void drop_range(const Dropout *dropout, float *y, const float *x, int64_t n,
                       uint64_t start) {
    enum { RUN = 256 };
    uint32_t bits[RUN];
    for (int64_t i = 0; i < n; i += RUN) {
        int64_t count = n - i < RUN ? n - i : RUN;
        random_bits_fill(bits, dropout->seed, dropout->stream, start + (uint64_t)i, count);
        for (int64_t j = 0; j < count; j++)
            y[i + j] = x[i + j] * (bits[j] < dropout->drop.below ? 0.0f : dropout->drop.scale);
    }
}

/* Applies dropout to row r of a piece, of n elements. A folded (zigzag) row is two ranges. */
static void drop_row(const Dropout *dropout, float *y, const float *x, int64_t n, int64_t r) {
    const ht_view *view = dropout->view;
    int last = view->rank - 1;
    int64_t first = last >= 0 && view->gap[last] ? view->fold[last] : n;
    uint64_t start = row_start(view, r);
    drop_range(dropout, y, x, first, start + (last >= 0 ? (uint64_t)view->offset[last] : 0));
    if (first < n)
        drop_range(dropout, y + first, x + first, n - first,
                   start + (uint64_t)ht_view_place(view, last, first));
}

/* Applies dropout. Attributes: the probability, the stream. */
void ht_dropout_kernel(const ht_call *call) {
    const ht_view *in = &call->operand[0];
    Rows x = rows_of(in, "dropout"), y = rows_of(&call->result[0], "dropout");
    double p = call->attr[0].f;
    int64_t count = cpu_count(in), n = x.n, rows = n > 0 ? count / n : 0;
    if (!call->training || p <= 0) {
        memcpy(y.data, x.data, (size_t)count * ht_dtype_bytes(x.dtype));
        return;
    }
    Dropout dropout = {.seed = call->seed,
                       .stream = random_stream_of_step(call->attr[1].i, call->step),
                       .drop = random_drop(p),
                       .view = in};
#pragma omp parallel if (count > CPU_PARALLEL)
    {
        float *scratch = cpu_alloc((size_t)(2 * n) * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t r = 0; r < rows; r++) {
            float *to = row_target(&y, r, scratch);
            drop_row(&dropout, to, row_load(&x, r, scratch + n), n, r);
            row_store(&y, r, to);
        }
        free(scratch);
    }
}
