#include <hetu/hetu.h>
#include <stdio.h>
enum { ROWS = 12, WIDTH = 6, HIDDEN = 10 };
#pragma hspmd strategy plain
#pragma hspmd   split batch:dp  hidden:tp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy
#pragma hspmd strategy sgd
#pragma hspmd   split batch:dp  hidden:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy
#pragma hspmd strategy loop
#pragma hspmd   split batch:dp  hidden:tp
#pragma hspmd   zero 1
#pragma hspmd   pipeline microbatches(3)
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.5f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.5f), "down");
#pragma hspmd dims(x: batch, _)
#pragma hspmd dims(up: hidden, _)
    ht_tensor h = ht_linear(x, up, HT_NONE);
    ht_tensor g = ht_gelu(h);
    ht_tensor y = ht_linear(g, down, HT_NONE);
    ht_tensor error = ht_sub(y, x);
    ht_tensor total = ht_mean(ht_mul(error, error));
    return total;
}
#ifdef SGD
#define OPTIMIZER ht_sgd(.lr = 1e-1f)
#else
#define OPTIMIZER ht_adamw(.lr = 1e-2f, .clip = 0.1f)
#endif

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, OPTIMIZER);
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < 5; step++) {
        float value = ht_step(program, ht_feed("x", rows));
        printf("step %d loss %.9g\n", step, value);
    }
    return 0;
}
