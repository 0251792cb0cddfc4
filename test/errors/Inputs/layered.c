/* Layers 0 to 3, and then one with a name. */
#include <hetu/hetu.h>

#include <stdio.h>

enum { LAYERS = 4 };

static ht_tensor dense(ht_tensor x, const char *name)
{
    return ht_relu(ht_linear(x, ht_param(ht_shape(6, 6), ht_normal(0.1f), name), HT_NONE));
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(12, 6));
#pragma hspmd dims(x: batch, width)
    for (int l = 0; l < LAYERS; l++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", l);
#pragma hspmd layer(l)
        x = dense(x, name);
    }
#pragma hspmd layer(head)
    x = dense(x, "head");
    return ht_mean(x);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}
