/* Running sums along the rows of a tensor. */
#include "operators/kernels.h"

/* Attribute: the direction. */
void ht_running_sum_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0];
    int64_t n = x->extent[x->rank - 1], rows = ht_view_count(x, 0, x->rank - 1), step = call->attr[0].i;
    for (int64_t r = 0; r < rows; r++) {
        const float *from = (const float *)x->data + r * n;
        float *to = (float *)call->result[0].data + r * n, sum = 0;
        for (int64_t i = 0, c = step > 0 ? 0 : n - 1; i < n; i++, c += step)
            to[c] = sum += from[c];
    }
}
