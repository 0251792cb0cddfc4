/* Calls of ht_balance that end the program, by the word on the command line; `fine` and `later` are none. */
#include <hetu/hetu.h>

#include <stdio.h>
#include <string.h>

#pragma hspmd strategy both
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor output(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 2)), w = ht_param(ht_shape(2, 2), ht_ones(), "w");
#pragma hspmd dims(x: batch, _)
    return ht_output(ht_linear(x, w, HT_NONE), "y");
}

static ht_tensor loss(void) { return ht_mean(output()); }

static ht_tensor other(void)
{
    ht_tensor y = output();
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float x[8];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 1)), *second = ht_train(session, other, ht_sgd(.lr = 1)), *forward = ht_infer(session, output);
    const char *kind = argc > 1 ? argv[1] : "fine";
    if (!strcmp(kind, "null"))
        ht_balance(NULL);
    if (!strcmp(kind, "infer"))
        ht_balance(forward);
    if (!strcmp(kind, "later"))
        ht_step(second, ht_feed("x", x));
    ht_balance(program, .change = !strcmp(kind, "change") ? -0.1 : 0.2, .steps = !strcmp(kind, "steps") ? -1 : 4, .horizon = !strcmp(kind, "horizon") ? -5 : 10, .quiet = true);
    if (!strcmp(kind, "second"))
        ht_balance(second);
    for (int step = 0; step < 8; step++) {
        ht_balance(program);
        ht_step(program, ht_feed("x", x));
    }
    puts("done");
    return 0;
}
