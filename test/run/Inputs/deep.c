/* A model with very many layers: what hetucc does must stay nearly linear in their number. */
#include <hetu/hetu.h>

#include <stdio.h>

#ifndef LAYERS
#define LAYERS 10000
#endif
enum { BATCH = 4, WIDTH = 6 };

ht_tensor deep_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, WIDTH));
#pragma hspmd dims(x: batch)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.001), "w");
#pragma hspmd layer(l)
        x = ht_add(x, ht_relu(ht_linear(x, w, HT_NONE)));
    }
    return ht_mean(x);
}

int main(int argc, char **argv)
{
    static const float x[BATCH * WIDTH] = {1, 2, 3, 4, 5, 6};
    ht_session *session = ht_open(&argc, &argv);
    ht_program *deep = ht_train(session, deep_loss, ht_adamw(.lr = 1e-5f));
    for (int step = 0; step < 3; step++)
        printf("%.6g\n", (double)ht_step(deep, ht_feed("x", x)));
    return 0;
}
