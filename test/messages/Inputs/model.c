#include <hetu/hetu.h>

#ifndef ROWS
#define ROWS 12
#endif

#pragma hspmd strategy plain
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, 8));
    ht_tensor w = ht_param(ht_shape(8, 8), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, _)
    ht_tensor y = ht_reshape(ht_linear(x, w, HT_NONE), ht_shape(ROWS, 2, 4));
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}
