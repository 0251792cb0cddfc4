/* Layers of one product each, whose weights are frozen: a stage has products of m n k forward, and as many backward. */
#include <hetu/hetu.h>
#include <hetu/ops.h>

enum { ROWS = 24, WIDTH = 64, LAYERS = 4 };

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

static ht_tensor first(void)
{
    return ht_mean(ht_param(ht_shape(WIDTH), ht_zeros(), "shift"));
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH], mean;
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f)), *reader = ht_infer(session, first);
    ht_step(program, ht_feed("x", rows));
    ht_run(reader);
    ht_fetch(reader, "", &mean);
    return 0;
}
