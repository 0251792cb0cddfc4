/* Layers of one product each, whose weights are frozen: each takes as long forward as backward. And a parameter whose gradient is summed. */
#include <hetu/hetu.h>
#include <hetu/ops.h>

#ifndef LAYERS
#define LAYERS 4
#endif
#ifndef ROWS
#define ROWS 24
#endif
#ifndef COUNT
#define COUNT 64
#endif
enum { WIDTH = 64 };

static ht_tensor loss(void)
{
    ht_tensor h = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(h: batch, _)
    h = ht_add(h, ht_param(ht_shape(WIDTH), ht_zeros(), "shift"));
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.1f), "w", .frozen = true);
#pragma hspmd layer(l)
        h = ht_linear(h, w, HT_NONE);
    }
    return ht_mean(ht_mul(h, h));
}

static ht_tensor summed(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, COUNT));
#pragma hspmd dims(x: batch, _)
    return ht_mean(ht_mul(x, ht_param(ht_shape(COUNT), ht_zeros(), "p")));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH], more[ROWS * COUNT];
    ht_session *session = ht_open(&argc, &argv);
#ifdef SUMMED
    ht_step(ht_train(session, summed, ht_sgd(.lr = 0.1f)), ht_feed("x", more));
    (void)rows, (void)loss;
#else
    ht_step(ht_train(session, loss, ht_sgd(.lr = 0.1f)), ht_feed("x", rows));
    (void)more, (void)summed;
#endif
    return 0;
}
