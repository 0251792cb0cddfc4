#include "layers.h"

ht_tensor block(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "w"), b = ht_param(ht_shape(WIDTH), ht_zeros(), "b");
#pragma hspmd dims(w: out, _)
    return ht_linear(x, w, b);
}
