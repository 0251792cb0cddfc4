/* The training loop: the model and its strategy are in model.c, the optimizer is in optim.c. With MINE that is a rule of optim.c's own. */
#include "layers.h"
#include <stdio.h>

enum { STEPS = 6, ELEMENTS = ROWS * WIDTH };

#ifdef MINE
#define OPTIONS
#else
#define OPTIONS .groups = ht_groups({"*.b", ht_averaged(ht_adafactor(.lr = 0.02f), 0.9f)})
#endif

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *train = ht_train(session, loss, chosen(), OPTIONS);
    float x[ELEMENTS], y[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * 7 % 11 - 5) / 4;
    for (int step = 0; step < STEPS; step++)
        printf("%.7f\n", ht_step(train, ht_feed("x", x)));
#ifndef MINE
    ht_program *averaged = ht_infer(session, model, .averaged = true);
    ht_run(averaged, ht_feed("x", x));
    ht_fetch(averaged, "", y);
    printf("%.7f\n", y[7]);
    ht_fetch(train, "h1.w.momentum", y);
    printf("%.7f\n", y[7]);
#endif
    ht_fetch(train, "h1.w", y);
    printf("%.7f\n", y[7]);
    return 0;
}
