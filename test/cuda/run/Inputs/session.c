/* Programs of one session, in turns: both back ends print the same. What differs between steps reaches the kernels of every one: rates, the
 * step's number (dropout), new parameters, new inputs. */
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 6, IN = 5, OUT = 4, STEPS = 6 };

static ht_tensor apply(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(OUT, IN), ht_normal(0.5f), "w"), bias = ht_param(ht_shape(OUT), ht_constant(0.25f), "bias");
    return ht_gelu(ht_linear(x, w, bias));
}

static ht_tensor error(ht_tensor x)
{
    ht_tensor difference = ht_sub(apply(x), ht_input("y", HT_F32, ht_shape(ROWS, OUT)));
    return ht_mean(ht_mul(difference, difference));
}

static ht_tensor plain(void) { return error(ht_input("x", HT_F32, ht_shape(ROWS, IN))); }

static ht_tensor dropped(void) { return error(ht_dropout(ht_input("x", HT_F32, ht_shape(ROWS, IN)), 0.5f)); }

static ht_tensor forward(void) { return ht_sum(apply(ht_dropout(ht_input("x", HT_F32, ht_shape(ROWS, IN)), 0.5f))); }

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *first = ht_train(session, plain, ht_sgd(.lr = 0.1f, .momentum = 0.5f));
    ht_program *second = ht_train(session, dropped, ht_adamw(.lr = 0.01f, .clip = 0.05f));
    ht_program *infer = ht_infer(session, forward);
    float x[ROWS * IN], y[ROWS * OUT], sum, bias[OUT];
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * IN; i++)
            x[i] = (float)((i + step) * 7 % 13 - 6) / 4;
        for (int i = 0; i < ROWS * OUT; i++)
            y[i] = (float)(i * 5 % 7 - 3) / 4;
        ht_set_rate(first, 0.1f * (float)(step + 1));
        ht_set_rate(second, step % 2 ? 0 : 0.05f);
        printf("%.4f ", ht_step(first, ht_feed("x", x), ht_feed("y", y)));
        printf("%.4f ", ht_step(second, ht_feed("x", x), ht_feed("y", y)));
        ht_get_param(session, "bias", bias, OUT);
        for (int i = 0; step == 3 && i < OUT; i++)
            bias[i] += 1;
        ht_set_param(session, "bias", bias, OUT);
        ht_run(infer, ht_feed("x", x));
        ht_fetch(infer, "", &sum);
        printf("%.3f %.4f\n", sum, bias[0]);
    }
    return 0;
}
