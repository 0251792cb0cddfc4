/* ht_grad_norm and ht_progress: each step prints the norm of the gradients, and what it follows from: by SGD a parameter changes by its
 * gradient times the rate. -DCLIP=N clips to a norm of N, of which ht_grad_norm knows nothing. -DFROZEN=true trains nothing. */
#include <hetu/hetu.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 12, SEQ = 5, WIDTH = 22, WORDS = 31, STEPS = 60, PARAMS = 3 };
#ifndef CLIP
#define CLIP 0
#endif
#ifndef FROZEN
#define FROZEN false
#endif

#pragma hspmd strategy mesh
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2 by 3:1)
#pragma hspmd end strategy

#pragma hspmd strategy stages
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   pipeline microbatches(2) rows(4)
#pragma hspmd     stage devices(0-1) mesh(tp:2) layers(0)
#pragma hspmd     stage devices(2-3) mesh(dp:2) layers(1)
#pragma hspmd   pipeline microbatches(2) rows(2)
#pragma hspmd     stage devices(4) layers(0-1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor id = ht_input("id", HT_I32, ht_shape(ROWS, SEQ)), y, e;
    ht_tensor table = ht_param(ht_shape(WORDS, WIDTH), ht_normal(0.5f), "table", .frozen = FROZEN);
    ht_tensor up = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "up", .frozen = FROZEN);
    ht_tensor down = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "down", .frozen = FROZEN);
#pragma hspmd dims(id: batch, _)
#pragma hspmd dims(up: out, _)
#pragma hspmd layer(0)
    e = ht_tanh(ht_linear(ht_embedding(table, id), up, HT_NONE));
#pragma hspmd layer(1)
    y = ht_linear(e, down, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

/* The values of all parameters in a row; how many there are. */
static size_t parameters(ht_session *session, float *to)
{
    size_t count, all = 0;
    const char *name;
    for (int p = 0; (name = ht_param_name(session, p, &count)); p++) {
        ht_get_param(session, name, to + all, count);
        all += count;
    }
    return all;
}

int main(int argc, char **argv)
{
    static int id[ROWS * SEQ];
    static float before[WIDTH * (WORDS + 2 * WIDTH)], after[WIDTH * (WORDS + 2 * WIDTH)];
    const float rate = 0.5f;
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = rate, .clip = CLIP));
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < ROWS * SEQ; i++)
            id[i] = (i * 7 + step) % WORDS;
        size_t count = parameters(session, before);
        ht_step(program, ht_feed("id", id));
        parameters(session, after);
        double square = 0;
        for (size_t i = 0; i < count; i++)
            square += ((double)after[i] - before[i]) * ((double)after[i] - before[i]);
        printf("%.9g %.9g\n", ht_grad_norm(program), sqrt(square) / rate);
        ht_progress(program, STEPS);
    }
    return 0;
}
