#include "layers.h"

#pragma hspmd strategy four
#pragma hspmd   split batch:dp out:tp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), y = x;
#pragma hspmd dims(x: batch, _)
    for (int l = 0; l < 2; l++) {
        ht_scope("h%d", l);
        y = ht_tanh(block(y));
    }
    return y;
}

ht_tensor loss(void)
{
    ht_tensor y = model();
    return ht_mean(ht_mul(ht_sub(y, ht_scalar(1)), y));
}
