#include "tables.h"

#include <hetu/cuda.h>

/* One thread, so that the loss is added up in order. */
static __global__ void forward_device(float *goes, const float *came, const float *weights, float *loss, bool first)
{
    for (int i = 0; i < WIDTH; i++)
        goes[i] = came[i] * weights[i];
    if (!loss)
        return;
    if (first)
        *loss = 0;
    for (int i = 0; i < WIDTH; i++)
        *loss += goes[i];
}

static __global__ void backward_device(float *back_goes, float *gradient, const float *back_came, const float *came, const float *weights,
                                       bool first)
{
    for (int i = 0; i < WIDTH; i++) {
        float back = back_came ? back_came[i] : 1, here = back * came[i];
        gradient[i] = first ? here : gradient[i] + here;
        back_goes[i] = back * weights[i];
    }
}

static __global__ void update_device(float *weights, const float *gradient)
{
    for (int i = 0; i < WIDTH; i++)
        weights[i] -= RATE * gradient[i];
}

void forward(ht_worker *r)
{
    part_begins(r, FORWARD);
    ht_launch(forward_device, 1, 1, 0, goes(r), came(r), weights(r), r->position < stages - 1 ? (float *)NULL : loss_of(r), !r->microbatch);
}

void backward(ht_worker *r)
{
    part_begins(r, BACKWARD);
    ht_launch(backward_device, 1, 1, 0, back_goes(r), gradient(r), r->position < stages - 1 ? back_came(r) : (float *)NULL, came(r),
              weights(r), !r->microbatch);
    if (pipelines > 1)
        ht_ready(r, SUM);
}

void tail(ht_worker *r) { part_begins(r, TAIL); }

void update(ht_worker *r)
{
    part_begins(r, UPDATE);
    ht_launch(update_device, 1, 1, 0, weights(r), pipelines > 1 ? total(r) : gradient(r));
}
