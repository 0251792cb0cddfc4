/* Values that go from one visit of a stage to another past other stages, and whose gradients come back from several visits: models of a few
 * numbers, chosen by CASE.
 *
 *     1  a gradient between two visits of one stage is read by a parameter's gradient alone
 *     2  two visits of a stage are put together behind the visit that the model runs between them
 *     3  losses of several visits, of values that earlier visits make
 */
#include <hetu/hetu.h>

#include <stdio.h>

enum { B = 6, E = 4, STEPS = 3 };

static ht_tensor gains(const char *name) { return ht_param(ht_shape(E), ht_ones(), name); }

#if CASE == 1
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(B, E)), e = ht_mul(x, gains("g")), y = ht_add(x, e), l;
#pragma hspmd layer(0)
    y = ht_tanh(y);
#pragma hspmd layer(1)
    y = ht_tanh(ht_linear(y, ht_param(ht_shape(E, E), ht_normal(0.4f), "w"), HT_NONE));
#pragma hspmd layer(2)
    l = ht_mean(ht_mul(y, e));
    return l;
}
#elif CASE == 2
static ht_tensor loss(void)
{
    ht_tensor x = ht_mul(ht_input("x", HT_F32, ht_shape(B, E)), gains("w")), y, z, s;
#pragma hspmd layer(0)
    y = ht_tanh(x);
#pragma hspmd layer(1)
    s = ht_mean(y);
#pragma hspmd layer(2)
    z = ht_tanh(y);
#pragma hspmd layer(3)
    s = ht_add(s, ht_mean(z));
#pragma hspmd layer(4)
    s = ht_add(s, ht_mean(ht_mul(z, x)));
    return s;
}
#else
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(B, E)), e = ht_mul(x, gains("g")), y, s, l;
#pragma hspmd layer(0)
    y = ht_mul(x, gains("w"));
#pragma hspmd layer(1)
    s = ht_mean(x);
#pragma hspmd layer(2)
    y = ht_tanh(y);
#pragma hspmd layer(3)
    s = ht_add(s, ht_mean(y));
#pragma hspmd layer(4)
    s = ht_add(s, ht_mean(ht_mul(y, y)));
#pragma hspmd layer(head)
    l = ht_add(ht_mean(ht_mul(y, e)), s);
    return l;
}
#endif

int main(int argc, char **argv)
{
    static float x[B * E];
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_sgd());
    for (int k = 0; k < B * E; k++)
        x[k] = 0.25f * (float)(k % 7);
    for (int step = 0; step < STEPS; step++)
        printf("%.9g\n", ht_step(program, ht_feed("x", x)));
    return 0;
}
