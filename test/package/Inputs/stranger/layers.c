#include <layers.h>

ht_tensor layer(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "w");
    return ht_linear(x, w, HT_NONE);
}
