/* A model to look at while it runs: four layers, and a logarithm in layer 2 that is asked for a negative number in step 3 (argument `negative`);
 * -DMASKED puts minus infinity before the softmax, and has attention that hides keys, which is no mistake, -DENDLESS a quotient by zero behind it, which is one. */
#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 16, WIDTH = 96, LAYERS = 4, STEPS = 6, BAD = 13 };

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy stages
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 1
#pragma hspmd   pipeline microbatches(2) rows(4)
#pragma hspmd     stage devices(0-1) mesh(tp:2) layers(0-1)
#pragma hspmd     stage devices(2-3) mesh(dp:2) layers(2-3)
#pragma hspmd   pipeline microbatches(2) rows(4)
#pragma hspmd     stage devices(4) layers(0-3)
#pragma hspmd   idle devices(5)
#pragma hspmd end strategy

static ht_tensor block(ht_tensor x, int l)
{
    ht_scope("h%d", l);
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.1f), "w");
#pragma hspmd dims(w: out, _)
    ht_tensor y = ht_linear(x, w, HT_NONE);
#ifdef MASKED
    ht_tensor rows = ht_reshape(x, ht_shape(ROWS, 6, 4, WIDTH / 24)), seen = ht_masked_attention(rows, rows, rows, .causal = true, .window = 5);
    ht_tensor segments = ht_full(ht_shape(ROWS, 6), 1, HT_I32), blind = ht_attention_packed(rows, rows, rows, segments, ht_full(ht_shape(ROWS, 6), 2, HT_I32), false);
    ht_tensor one = ht_param(ht_shape(1, WIDTH), ht_normal(0.1f), "one");
#pragma hspmd dims(one: out, _)
    y = ht_add(y, ht_add(ht_max(one, .dim = ht_shape(0)), ht_reshape(blind, ht_shape(ROWS, WIDTH))));
    y = ht_where(ht_gt(y, ht_scalar(-1)), ht_add(y, ht_reshape(seen, ht_shape(ROWS, WIDTH))), ht_scalar(-INFINITY));
#endif
    return ht_softmax(y);
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), gate = ht_input("gate", HT_F32, ht_shape(ROWS, WIDTH));
#pragma hspmd dims(x, gate: batch, _)
    for (int l = 0; l < LAYERS; l++) {
#pragma hspmd layer(l)
        x = block(x, l);
        if (l == 2) {
#pragma hspmd layer(l)
            x = ht_add(x, ht_log(gate));
        }
#ifdef ENDLESS
#pragma hspmd layer(l)
        x = l == 3 ? ht_div(x, ht_sub(x, x)) : x;
#endif
    }
    return ht_mean(ht_mul(x, x));
}

int main(int argc, char **argv)
{
    static float x[ROWS * WIDTH], gate[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-3f));
    for (int i = 0; i < ROWS * WIDTH; i++) {
        x[i] = (float)(i * 7 % 13 - 6) / 6;
        gate[i] = 1;
    }
    for (int step = 0; step < STEPS; step++) {
        gate[BAD * WIDTH + 5] = argc < 2 || strcmp(argv[1], "negative") || step < 3 ? 1 : -1;
        printf("%.9g\n", ht_step(program, ht_feed("x", x), ht_feed("gate", gate)));
    }
    return 0;
}
