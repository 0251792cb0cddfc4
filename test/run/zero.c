/* What ZeRO may meet beside a model's weights: a scalar, fewer elements than devices, a tied parameter, a frozen one, one whose layout the
 * source writes, one that no layer has, a second program between the steps, and parameters that are read and set. Prints what the
 * one-device program does. */
#include <hetu/hetu.h>
#include <stdio.h>
#ifndef DTYPE
#define DTYPE HT_F32
#endif
#ifndef SHARD
#define SHARD                                                                                                                              \
    split 0 inner([0, 1] { 0 : 2 } |                                                                                                       \
                  [2, 3] {                                                                                                                 \
                      dup:                                                                                                                 \
                          2                                                                                                                \
                  })
#endif
enum { ROWS = 12, WIDTH = 6, HIDDEN = 10, LAYERS = 2 };

static ht_tensor layer(ht_tensor x, int l)
{
    ht_scope("h%d", l);
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.5f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.5f), "down", .frozen = l == 1);
    ht_tensor bias = ht_param(ht_shape(3), ht_normal(0.5f), "bias", .no_decay = true);
    ht_tensor gain = ht_param(ht_shape(HIDDEN), ht_ones(), "gain");
#pragma hspmd shard(gain : SHARD)
#pragma hspmd shard(down : split 1 inner by 2 : 1([ 3, 0 ]{1 : 2} | [2]{}))
#pragma hspmd dims(up : hidden, _)
    ht_tensor h = ht_mul(ht_gelu(ht_linear(x, up, HT_NONE)), gain);
    ht_tensor y = ht_reshape(ht_linear(h, down, HT_NONE), ht_shape(ht_extent(x, 0), 2, 3));
    return ht_reshape(ht_add(y, bias), ht_shape(ht_extent(x, 0), WIDTH));
}

static ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
    ht_tensor scale = ht_param(ht_shape(), ht_ones(), "scale");
    ht_tensor tied = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.5f), "tied");
#pragma hspmd dims(x : batch, _)
    ht_tensor y = ht_linear(x, tied, HT_NONE);
    for (int l = 0; l < LAYERS; l++) {
#pragma hspmd layer(l)
        y = layer(y, l);
    }
    return ht_mul(ht_linear(y, tied, HT_NONE), scale);
}

static ht_tensor loss(void)
{
    ht_tensor error = ht_sub(model(), ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)));
    return ht_mean(ht_mul(error, error));
}

#ifdef SGD
#define OPTIMIZER ht_sgd(.lr = 1e-2f, .momentum = 0.9f, .decay = 0.1f, .clip = 1)
#else
#define OPTIMIZER ht_adamw(.lr = 1e-2f, .clip = 0.1f)
#endif

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH], y[ROWS * WIDTH], tied[WIDTH * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, OPTIMIZER, .dtype = DTYPE), *forward = ht_infer(session, model);
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < 5; step++) {
        printf("step %d loss %.9g\n", step, ht_step(program, ht_feed("x", rows)));
        ht_run(forward, ht_feed("x", rows));
        ht_fetch(forward, "", y);
        printf("y %.9g %.9g\n", y[step], y[ROWS * WIDTH - 1 - step]);
        ht_get_param(session, "tied", tied, WIDTH * WIDTH);
        printf("tied %.9g\n", tied[step]);
        tied[step] = 0.5f;
        ht_set_param(session, "tied", tied, WIDTH * WIDTH);
    }
    return 0;
}
