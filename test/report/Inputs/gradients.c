/* Layers of one product each, whose weights are trained. */
#include <hetu/hetu.h>
#include <hetu/ops.h>

enum { LAYERS = 6, ROWS = 64, WIDTH = 256 };

static ht_tensor loss(void)
{
    ht_tensor h = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(h: batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.1f), "w");
#pragma hspmd layer(l)
        h = ht_linear(h, w, HT_NONE);
    }
    return ht_mean(ht_mul(h, h));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_step(ht_train(session, loss, ht_sgd(.lr = 0.1f)), ht_feed("x", rows));
    return 0;
}
