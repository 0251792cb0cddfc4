/* A model whose statements can be marked by the pragma recompute (-DMARK), in a loop, around dropout, an operator of the user's own, and layouts and conversions that the source writes. */
#include "../../../examples/common/train.h"

#ifdef MARK
#define AGAIN _Pragma("hspmd recompute")
#else
#define AGAIN
#endif

enum { ROWS = 6, SEQ = 7, WIDTH = 10, DEPTH = 3 };

#pragma hspmd op y[i..] = x[i..] * x[i..] / (1 + x[i..] * x[i..])
ht_tensor my_bump(ht_tensor x);

static ht_tensor part(ht_tensor x, const char *name)
{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), name);
#pragma hspmd dims(w: heads, _)
    ht_tensor y = ht_dropout(ht_gelu(ht_linear(x, w, HT_NONE)), 0.25f);
#ifdef WRITTEN
#pragma hspmd shard(y: {0:dp, 2:tp})
#pragma hspmd reshard(y: {0:dp, 1:tp})
#endif
    return y;
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, SEQ, WIDTH));
#pragma hspmd dims(x: batch, seq, _)
    ht_tensor start = x;
    for (int d = 0; d < DEPTH; d++) {
        ht_scope("h%d", d);
        AGAIN
        {
            ht_tensor y = part(x, "a");
            AGAIN
            y = ht_softmax(part(y, "b"));
            x = ht_add(x, y);
        }
    }
    AGAIN
    ht_tensor error = my_bump(ht_sub(x, ht_scale(start, 0.5f)));
    return ht_mean(error);
}

int main(int argc, char **argv)
{
    static float rows[ROWS * SEQ * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.5f, .momentum = 0.9f));
    for (int step = 0; step < 5; step++) {
        for (int i = 0; i < ROWS * SEQ * WIDTH; i++)
            rows[i] = (float)((i * 7 + step) % 13 - 6) / 6;
        printf("%a\n", (double)ht_step(program, ht_feed("x", rows)));
    }
    return 0;
}
