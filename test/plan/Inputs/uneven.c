/* Layers of two products, which a few rows do not share out well over unequal devices. */
#include <hetu/hetu.h>

enum { ROWS = 6, WIDTH = 16, LAYERS = 3 };

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), y = x;
#pragma hspmd dims(x : rows, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor up = ht_param(ht_shape(4 * WIDTH, WIDTH), ht_normal(0.1f), "up"),
                  down = ht_param(ht_shape(WIDTH, 4 * WIDTH), ht_normal(0.1f), "down");
#pragma hspmd dims(up : hidden, _)
#pragma hspmd dims(down : _, hidden)
#pragma hspmd layer(l)
        y = ht_add(y, ht_linear(ht_gelu(ht_linear(y, up, HT_NONE)), down, HT_NONE));
    }
    ht_tensor error = ht_sub(y, x);
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    static float x[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_step(ht_train(session, loss, ht_adamw(.lr = 1e-3f)), ht_feed("x", x));
    return 0;
}
