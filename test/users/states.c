/* States beside parameters: a running mean that training assigns and inference reads, two states that change places, and a cache of the last
 * rows, which a program without training keeps. */
#include <hetu/hetu.h>
#include <stdio.h>

enum { ROWS = 8, WIDTH = 11, KEPT = 5, STEPS = 6 };

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 3
#pragma hspmd   pipeline microbatches(2) rows(4)
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2 by 3:1)
#pragma hspmd end strategy

#pragma hspmd strategy stages
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 1
#pragma hspmd   pipeline microbatches(2) rows(2)
#pragma hspmd     stage devices(0-1) mesh(tp:2) layers(0)
#pragma hspmd     stage devices(2-3) mesh(dp:2) layers(1)
#pragma hspmd   pipeline microbatches(2) rows(2)
#pragma hspmd     stage devices(4) layers(0-1)
#pragma hspmd end strategy

static ht_tensor weight(void)
{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "w");
#pragma hspmd dims(w: out, _)
    return w;
}

static ht_tensor running_mean(void)
{
    ht_tensor mean = ht_state(ht_shape(WIDTH), ht_zeros(), "mean");
#pragma hspmd dims(mean: out)
    return mean;
}

static ht_tensor rows(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x: batch, _)
    return x;
}

static ht_tensor loss(void)
{
    ht_tensor x = rows(), y, mean = running_mean();
    ht_tensor a = ht_state(ht_shape(WIDTH), ht_ones(), "a"), b = ht_state(ht_shape(WIDTH), ht_constant(2), "b");
    ht_assign(a, b);
    ht_assign(b, a);
    ht_output(a, "a");
#pragma hspmd layer(0)
    y = ht_linear(x, weight(), HT_NONE);
    ht_assign(mean, ht_add(ht_mul(mean, ht_scalar(0.9)), ht_mul(ht_mean(y, .dim = ht_shape(0)), ht_scalar(0.1))));
#pragma hspmd layer(1)
    y = ht_sub(ht_gelu(y), x);
    return ht_mean(ht_mul(y, y));
}

static ht_tensor centred(void)
{
    ht_tensor x = rows(), y;
#pragma hspmd layer(0)
    y = ht_sub(ht_linear(x, weight(), HT_NONE), running_mean());
#pragma hspmd layer(1)
    y = ht_relu(y);
    return y;
}

static ht_tensor last_rows(void)
{
    ht_tensor x = ht_input("row", HT_F32, ht_shape(1, WIDTH)), cache = ht_state(ht_shape(KEPT, WIDTH), ht_zeros(), "cache"), next;
#pragma hspmd dims(x, cache: _, out)
#pragma hspmd layer(0)
    next = ht_concat(ht_list(ht_slice(cache, 0, 1, KEPT - 1), x), 0);
    ht_assign(cache, next);
#pragma hspmd layer(1)
    next = ht_mul(next, next);
    return ht_sum(next);
}

static float fetched(ht_program *program, const char *name, int index)
{
    static float all[ROWS * WIDTH];
    ht_fetch(program, name, all);
    return all[index];
}

int main(int argc, char **argv)
{
    static float x[ROWS * WIDTH], mean[WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *trained = ht_train(session, loss, ht_adamw(.lr = 1e-2f)), *run = ht_infer(session, centred), *cached = ht_infer(session, last_rows);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[i] = (float)((i * 7 + step * 5) % 13 - 6) / 6;
        printf("%.7f ", ht_step(trained, ht_feed("x", x)));
        ht_run(run, ht_feed("x", x));
        ht_run(cached, ht_feed_n("row", x, WIDTH));
        printf("%.7f %.7f %.7f\n", fetched(trained, "a", 3), fetched(run, "", 2), fetched(cached, "", 0));
    }
    ht_get_param(session, "mean", mean, WIDTH);
    for (int i = 0; i < WIDTH; i++)
        printf("%.7f%s", mean[i], i + 1 < WIDTH ? " " : "\n");
    ht_set_param(session, "mean", x, WIDTH);
    ht_run(run, ht_feed("x", x));
    printf("%.7f\n", fetched(run, "", 2));
    return 0;
}
