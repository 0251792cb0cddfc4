/* resumed FOLDER WORD...: t makes a step and prints its loss, s saves, r goes on from FOLDER and prints the step. -DLAYERS=N, -DOPTIMIZER=..., -DSCORES_FIRST: the program
 * of ht_infer comes before the one that trains. */
#include <hetu/hetu.h>

#include <stdio.h>

#ifndef LAYERS
#define LAYERS 2
#endif
#ifndef OPTIMIZER
#define OPTIMIZER ht_adamw(.lr = 0.01f)
#endif
enum { ROWS = 4, WIDTH = 5 };

static ht_tensor score(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), y = x;
#pragma hspmd dims(x: batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        y = ht_dropout(ht_tanh(ht_linear(y, ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.4f), "w"), HT_NONE)), 0.2f);
    }
    return ht_mean(ht_mul(ht_sub(y, x), y));
}

int main(int argc, char **argv)
{
    float x[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
#ifdef EARLY
    ht_resume(session, argv[1]);
#endif
#ifdef SCORES_FIRST
    ht_infer(session, score);
#endif
    ht_program *program = ht_train(session, score, OPTIMIZER);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = (float)(i * 3 % 7 - 3) / 3;
    for (const char *word = argv[2]; *word; word++)
        switch (*word) {
        case 't': printf("%.7f\n", ht_step(program, ht_feed("x", x))); break;
        case 's': ht_save(session, argv[1]); break;
        default: printf("at %lld\n", (long long)ht_resume(session, argv[1]));
        }
    return 0;
}
