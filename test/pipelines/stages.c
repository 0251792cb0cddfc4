#include "tables.h"

void forward(ht_worker *r)
{
    part_begins(r, FORWARD);
    for (int i = 0; i < WIDTH; i++)
        goes(r)[i] = came(r)[i] * weights(r)[i];
    if (r->position < stages - 1)
        return;
    if (!r->microbatch)
        *loss_of(r) = 0;
    for (int i = 0; i < WIDTH; i++)
        *loss_of(r) += goes(r)[i];
}

void backward(ht_worker *r)
{
    part_begins(r, BACKWARD);
    for (int i = 0; i < WIDTH; i++) {
        float back = r->position < stages - 1 ? back_came(r)[i] : 1, here = back * came(r)[i];
        gradient(r)[i] = r->microbatch ? gradient(r)[i] + here : here;
        back_goes(r)[i] = back * weights(r)[i];
    }
    if (pipelines > 1)
        ht_ready(r, SUM);
}

void tail(ht_worker *r) { part_begins(r, TAIL); }

void update(ht_worker *r)
{
    part_begins(r, UPDATE);
    for (int i = 0; i < WIDTH; i++)
        weights(r)[i] -= RATE * (pipelines > 1 ? total(r) : gradient(r))[i];
}
