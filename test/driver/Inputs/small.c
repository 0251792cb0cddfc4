/* The smallest model that trains: one layer, rows along dp. */
#include <hetu/hetu.h>

#include <stdio.h>

#ifndef WIDTH
#define WIDTH 6
#endif

int helper(void);

#pragma hspmd strategy dp2
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, WIDTH));
    ht_tensor w = ht_param(ht_shape(3, WIDTH), ht_normal(0.5f), "w");
#pragma hspmd dims(x: rows, width)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    float x[4 * WIDTH];
    for (int i = 0; i < 4 * WIDTH; i++)
        x[i] = (float)(i % 7) - 3;
    float first = ht_step(program, ht_feed("x", x)), last = 0;
    for (int i = 0; i < 5; i++)
        last = ht_step(program, ht_feed("x", x));
    printf("devices %d helper %d %s\n", ht_device_count(session), helper(), last < first ? "learns" : "does not learn");
    return 0;
}
