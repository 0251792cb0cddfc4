#include "../lib/sizes.h"
#include <factor.h>

#include <hetu/cuda.h>
#include <hetu/kernel.h>

static __global__ void triple_device(float *y, const float *x, int64_t count)
{
    for (int64_t i = ht_thread(); i < count; i += ht_threads())
        y[i] = FACTOR * x[i];
}

extern "C" void triple_cuda(const ht_call *call)
{
    const int64_t count = ht_view_count(&call->result[0], 0, call->result[0].rank);
    ht_launch(triple_device, ht_blocks(count, 256), 256, 0, (float *)call->result[0].data, (const float *)call->operand[0].data, count);
}
