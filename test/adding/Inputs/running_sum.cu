/* Running sums along the rows of a tensor: a thread adds up a row. */
#include "cuda/views.h"
#include "operators/kernels.h"

__global__ void running_sum(float *to, const float *from, int64_t rows, int64_t n, int64_t step)
{
    const int64_t row = ht_thread();
    float sum = 0;
    if (row >= rows)
        return;
    for (int64_t i = 0, c = step > 0 ? 0 : n - 1; i < n; i++, c += step)
        to[row * n + c] = sum += from[row * n + c];
}

/* Attribute: the direction. */
void ht_running_sum_kernel(const ht_call *call)
{
    enum { THREADS = 128 };
    const ht_view *x = &call->operand[0];
    const int64_t rows = ht_view_count(x, 0, x->rank - 1);
    ht_launch(running_sum, dim3((unsigned)((rows + THREADS - 1) / THREADS)), THREADS, 0, static_cast<float *>(call->result[0].data),
              static_cast<const float *>(x->data), rows, x->extent[x->rank - 1], call->attr[0].i);
}
