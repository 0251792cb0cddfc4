/* Outputs that have the batch's rows: each micro-batch's are collected, of pipelines of unequal stages, devices and rows.

RUN: %cc %s -o %t.plain %flags && %t.plain > %t.expected
RUN: %hetucc -O1 %s -o %t -lm && env HETU_CHECK=1 %mpirun 4 %t | diff %t.expected -
*/
#include <hetu/hetu.h>

#include <stdio.h>
int batch = 7;
#pragma hspmd shape(batch)
#pragma hspmd strategy s
#pragma hspmd split b : dp
#pragma hspmd pipeline microbatches(2) rows(2)
#pragma hspmd stage devices(0 - 1) mesh(dp : 2) layers(0)
#pragma hspmd stage devices(2) layers(1)
#pragma hspmd pipeline microbatches(1) rows(3)
#pragma hspmd stage devices(3) layers(0 - 1)
#pragma hspmd end strategy
static ht_tensor layer(ht_tensor x, const char *n) { return ht_relu(ht_linear(x, ht_param(ht_shape(4, 4), ht_normal(0.5f), n), HT_NONE)); }
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, 4));
#pragma hspmd dims(x : b, _)
#pragma hspmd layer(0)
    ht_tensor h = layer(x, "w0");
    ht_output(h, "h");
#pragma hspmd layer(1)
    ht_tensor y = layer(h, "w1");
    ht_output(y, "y");
    return ht_mean(ht_mul(y, y));
}
int main(int argc, char **argv)
{
    ht_session *s = ht_open(&argc, &argv);
    ht_program *p = ht_train(s, loss, ht_sgd(.lr = 0.1f));
    float x[28], h[28], y[28];
    for (int i = 0; i < 28; i++)
        x[i] = (float)(i * 7 % 11) - 5;
    for (int k = 0; k < 2; k++) {
        printf("%.6f\n", ht_step(p, ht_feed("x", x)));
        ht_fetch(p, "h", h);
        ht_fetch(p, "y", y);
        for (int i = 0; i < 28; i++)
            printf("%.5f %.5f\n", h[i], y[i]);
    }
}
