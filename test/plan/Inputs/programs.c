/* Two programs that train the same layers on batches of other rows, and one that infers. */
#include <hetu/hetu.h>

enum { ROWS = 4, WIDTH = 16, LAYERS = 2 };

static ht_tensor body(int rows)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(rows, WIDTH));
#pragma hspmd dims(x : batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor up = ht_param(ht_shape(4 * WIDTH, WIDTH), ht_normal(0.1f), "up"),
                  down = ht_param(ht_shape(WIDTH, 4 * WIDTH), ht_normal(0.1f), "down");
#pragma hspmd dims(up : hidden, _)
#pragma hspmd dims(down : _, hidden)
#pragma hspmd layer(l)
        x = ht_add(x, ht_linear(ht_gelu(ht_linear(x, up, HT_NONE)), down, HT_NONE));
    }
    return ht_mean(ht_mul(x, x));
}

static ht_tensor small(void) { return body(ROWS); }
static ht_tensor large(void) { return body(3 * ROWS); }
static ht_tensor largest(void) { return body(10 * ROWS); }

int main(int argc, char **argv)
{
    static float x[10 * ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *first = ht_train(session, small, ht_adamw(.lr = 1e-3f)), *second = ht_train(session, large, ht_sgd(.lr = 1e-3f));
    ht_step(first, ht_feed_n("x", x, ROWS * WIDTH));
    ht_step(second, ht_feed_n("x", x, 3 * ROWS * WIDTH));
    ht_run(ht_infer(session, largest), ht_feed("x", x));
    return 0;
}
