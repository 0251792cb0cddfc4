/* Batch norm with running means: training, then what a program without training makes of them. Prints losses, weights, the states, values. */
#include <hetu/hetu.h>
#include <stdio.h>

enum { ROWS = 12, CHANNELS = 5, PLACES = 3, STEPS = 8 };

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp channel:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp channel:tp
#pragma hspmd   zero 3
#pragma hspmd   stage devices(0-3) mesh(dp:2 by 2:1, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy stages
#pragma hspmd   split batch:dp channel:tp
#pragma hspmd   pipeline microbatches(1) rows(12)
#pragma hspmd     stage devices(0-2) mesh(dp:3) layers(0)
#pragma hspmd     stage devices(3-4) mesh(tp:2) layers(1)
#pragma hspmd end strategy

static ht_tensor normed(bool training)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, CHANNELS, PLACES)), y;
    ht_tensor weight = ht_param(ht_shape(CHANNELS), ht_ones(), "weight"), bias = ht_param(ht_shape(CHANNELS), ht_zeros(), "bias");
#pragma hspmd dims(x: batch, channel)
#pragma hspmd layer(0)
    y = ht_batch_norm_running(x, weight, bias, "norm", training, .momentum = 0.3f);
#pragma hspmd layer(1)
    y = ht_tanh(y);
    return y;
}

static ht_tensor loss(void)
{
    ht_tensor e = ht_sub(normed(true), ht_scalar(0.25));
    return ht_mean(ht_mul(e, e));
}

static ht_tensor apply(void) { return normed(false); }

static void print_all(const float *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%.9g%s", at[i], i + 1 < count ? " " : "\n");
}

static void print_param(ht_session *session, const char *name)
{
    float values[CHANNELS];
    ht_get_param(session, name, values, CHANNELS);
    print_all(values, CHANNELS);
}

int main(int argc, char **argv)
{
    static float x[ROWS * CHANNELS * PLACES];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *trained = ht_train(session, loss, ht_sgd(.lr = 0.5f)), *applied = ht_infer(session, apply);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * CHANNELS * PLACES; i++)
            x[i] = (float)((i * 7 + step * 5) % 13 - 4) / 6;
        float value = ht_step(trained, ht_feed("x", x));
        print_all(&value, 1);
    }
    print_param(session, "weight");
    print_param(session, "bias");
    print_param(session, "norm.mean");
    print_param(session, "norm.variance");
    ht_run(applied, ht_feed("x", x));
    ht_fetch(applied, "", x);
    print_all(x, ROWS * CHANNELS * PLACES);
    return 0;
}
