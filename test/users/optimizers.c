/* Groups of parameters with optimizers of their own, schedules of the rate, averages, and optimizers that operators make up. -DOPTIMIZER=N says
 * which. Prints the losses, then all parameters of the program, then what it gives by averages. */
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 12, WIDTH = 9, HIDDEN = 14, STEPS = 24 };

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp hidden:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp hidden:tp
#pragma hspmd   zero 3
#pragma hspmd   pipeline microbatches(2) rows(6)
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2 by 3:1)
#pragma hspmd end strategy

#pragma hspmd strategy stages
#pragma hspmd   split batch:dp hidden:tp
#pragma hspmd   zero 2
#pragma hspmd   pipeline microbatches(2) rows(4)
#pragma hspmd     stage devices(0-1) mesh(tp:2) layers(0)
#pragma hspmd     stage devices(2-3) mesh(dp:2) layers(1)
#pragma hspmd   pipeline microbatches(1) rows(4)
#pragma hspmd     stage devices(4) layers(0-1)
#pragma hspmd end strategy

static ht_tensor predicted(ht_tensor x)
{
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.5f), "up.weight"), y;
    ht_tensor bias = ht_param(ht_shape(HIDDEN), ht_normal(0.1f), "up.bias");
    ht_tensor down = ht_param(ht_shape(3, HIDDEN), ht_normal(0.5f), "down.weight");
#pragma hspmd dims(up, bias: hidden)
#pragma hspmd dims(down: _, hidden)
#pragma hspmd layer(0)
    y = ht_tanh(ht_linear(x, up, bias));
#pragma hspmd layer(1)
    y = ht_linear(y, down, HT_NONE);
    return y;
}

static ht_tensor rows(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x: batch, _)
    return x;
}

static ht_tensor loss(void)
{
    ht_tensor y = ht_input("y", HT_F32, ht_shape(ROWS, 3)), e = ht_sub(predicted(rows()), y);
#pragma hspmd dims(y: batch, _)
    return ht_mean(ht_mul(e, e));
}

static ht_tensor apply(void) { return predicted(rows()); }

static ht_program *program(ht_session *session)
{
#if OPTIMIZER == 0 /* groups of one kind, a schedule, averages */
    return ht_train(session, loss, ht_averaged(ht_adamw(.lr = 2e-2f, .decay = 0.1f, .clip = 0.5f), 0.8f),
                    .groups = ht_groups({"*.bias", ht_averaged(ht_adamw(.lr = 1e-3f, .decay = 0, .clip = 0.5f), 0.8f)},
                                        {"down.*", ht_averaged(ht_adamw(.lr = 5e-3f, .decay = 0.5f, .beta1 = 0.7f, .clip = 0.5f), 0.8f)}));
#elif OPTIMIZER == 1
    return ht_train(session, loss, ht_averaged(ht_adafactor(.lr = 5e-2f, .decay = 0.1f), 0.8f));
#else
    return ht_train(session, loss, ht_averaged(ht_muon(.lr = 2e-2f), 0.8f),
                    .groups = ht_groups({"*.bias", ht_averaged(ht_adamw(.lr = 1e-2f), 0.8f)}));
#endif
}

#if OPTIMIZER == 0
static double factor(int64_t step) { return ht_warmup_cosine(step, 5, STEPS, 0.1); }
#endif

static void print_all(const float *at, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%.9g%s", at[i], i + 1 < count ? " " : "\n");
}

static void print_param(ht_session *session, const char *name, size_t count)
{
    static float values[HIDDEN * WIDTH];
    ht_get_param(session, name, values, count);
    print_all(values, count);
}

static void print_params(ht_session *session)
{
    print_param(session, "up.weight", HIDDEN * WIDTH);
    print_param(session, "up.bias", HIDDEN);
    print_param(session, "down.weight", 3 * HIDDEN);
}

int main(int argc, char **argv)
{
    static float x[ROWS * WIDTH], y[ROWS * 3];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *trained = program(session), *averaged = ht_infer(session, apply, .averaged = true);
#if OPTIMIZER == 0
    ht_set_schedule(trained, factor);
#endif
    print_params(session);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[i] = (float)((i * 7 + step * 5) % 13 - 6) / 6;
        for (int i = 0; i < ROWS * 3; i++)
            y[i] = (float)((i * 5 + step * 3) % 11 - 5) / 5;
        float value = ht_step(trained, ht_feed("x", x), ht_feed("y", y));
        print_all(&value, 1);
    }
    print_params(session);
    ht_run(averaged, ht_feed("x", x));
    ht_fetch(averaged, "", y);
    print_all(y, ROWS * 3);
    return 0;
}
