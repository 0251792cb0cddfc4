/* Whatever has a name in a model, fetched from a program that trains and from one that only runs: outputs of layers under their scopes, cut and on stages of their own, with rows anywhere, with
 * other types, and sums; parameters, states of the model and of the optimizer's rule, and inputs. With an argument, what that names is fetched. */
#include <hetu/hetu.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 8, WIDTH = 6, STEPS = 3, LAYERS = 2, MOST = ROWS * WIDTH * 2 };

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

static ht_tensor block(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.4f), "w");
#pragma hspmd dims(w: out, _)
    ht_tensor y = ht_output(ht_tanh(ht_linear(x, w, HT_NONE)), "y");
    ht_output(ht_transpose(ht_mul(y, y), 0, 1), "turned");
    return y;
}

static ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), y = x;
#pragma hspmd dims(x: batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        y = block(y);
    }
    return y;
}

static ht_tensor loss(void)
{
    ht_tensor y = model(), id = ht_input("id", HT_I32, ht_shape(ROWS)), seen = ht_state(ht_scalar_shape(), ht_zeros(), "seen");
#pragma hspmd dims(id: batch)
    ht_output(ht_cast(ht_gt(y, ht_scalar(0)), HT_I64), "sign");
    ht_output(ht_argmax(y, .dim = ht_shape(-1)), "best");
    ht_assign(seen, ht_add(seen, ht_output(ht_sum(ht_cast(id, HT_F32)), "ids")));
    return ht_mean(ht_mul(ht_sub(y, ht_scalar(0.25)), y));
}

static void show(ht_program *program, const char *name, int count)
{
    static float values[MOST];
    ht_fetch(program, name, values);
    for (int i = 0; i < count; i++)
        printf("%.7f ", values[i]);
}

static void show_integers(ht_program *program, const char *name, int count, size_t size)
{
    static int64_t values[MOST];
    ht_fetch(program, name, values);
    for (int i = 0; i < count; i++)
        printf("%lld ", size == 4 ? (long long)((const int32_t *)values)[i] : (long long)values[i]);
}

/* Integers are near no border: their order does not depend on rounding. */
static void show_training(ht_program *train)
{
    show(train, "", 1);
    show(train, "h0.y", ROWS * WIDTH);
    show(train, "h1.y", ROWS * WIDTH);
    show(train, "h0.turned", ROWS * WIDTH);
    show(train, "h1.turned", ROWS * WIDTH);
    show_integers(train, "sign", ROWS * WIDTH, 8);
    show_integers(train, "best", ROWS, 8);
    show(train, "ids", 1);
    show(train, "seen", 1);
    show(train, "h0.w", WIDTH * WIDTH);
    show(train, "h1.w", WIDTH * WIDTH);
    show(train, "h1.w.momentum", WIDTH * WIDTH);
    show(train, "h0.w.average", WIDTH * WIDTH);
    show(train, "x", ROWS * WIDTH);
    show_integers(train, "id", ROWS, 4);
}

int main(int argc, char **argv)
{
    float x[ROWS * WIDTH];
    int id[ROWS];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *train = ht_train(session, loss, ht_averaged(ht_muon(.lr = 0.02f), 0.5f)), *run = ht_infer(session, model);
    ht_program *averaged = ht_infer(session, model, .averaged = true);
    show(train, "h0.w", WIDTH * WIDTH);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * WIDTH; i++)
            x[i] = (float)((i * 7 + step * 5) % 13 - 6) / 5;
        for (int i = 0; i < ROWS; i++)
            id[i] = i * 3 + step;
        ht_step(train, ht_feed("x", x), ht_feed("id", id));
        show_training(train);
        ht_run(run, ht_feed("x", x));
        ht_run(averaged, ht_feed("x", x));
        show(run, "h0.y", ROWS * WIDTH);
        show(run, "h1.turned", ROWS * WIDTH);
        show(run, "h1.w", WIDTH * WIDTH);
        show(run, "x", ROWS * WIDTH);
        show(averaged, "", ROWS * WIDTH);
        show(averaged, "h0.w.average", WIDTH * WIDTH);
    }
    puts("");
    if (argc > 1)
        show(train, argv[1], 1);
    return 0;
}
