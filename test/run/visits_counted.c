/* A loss divided by what is counted, in a layer that stands beside the first one: the counts are of all micro-batches. */
#include <hetu/hetu.h>

#include <stdio.h>

enum { B = 12, E = 6, STEPS = 3 };

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(B, E)), z = ht_input("z", HT_F32, ht_shape(B, E));
    for (int k = 0; k < 3; k++)
#pragma hspmd layer(k)
        x = ht_tanh(ht_mul(x, ht_param(ht_shape(E), ht_ones(), "w")));
#pragma hspmd layer(head)
    x = ht_div(ht_sum(ht_mul(x, z)), ht_sum(z));
    return x;
}

int main(int argc, char **argv)
{
    static float x[B * E], z[B * E];
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_sgd());
    for (int k = 0; k < B * E; k++) {
        x[k] = 0.25f * (float)(k % 7);
        z[k] = (float)(1 + k / 11);
    }
    for (int step = 0; step < STEPS; step++)
        printf("%.9g\n", ht_step(program, ht_feed("x", x), ht_feed("z", z)));
    return 0;
}
