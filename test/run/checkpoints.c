/* A small model that goes on from a folder of checkpoints, argv[1], until argv[2] steps are made, and saves every second one; with argv[3], what it went on from is saved there at once.
 * It says how long its longest step took, saving included.
 */
#include <hetu/hetu.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
enum { B = 12, I = 37, O = 11 };
#pragma hspmd strategy one
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy
#pragma hspmd strategy dp3
#pragma hspmd   split batch:dp
#pragma hspmd   zero 3
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-2) mesh(dp:3)
#pragma hspmd end strategy
#pragma hspmd strategy tp4
#pragma hspmd   split out:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(tp:4)
#pragma hspmd end strategy
static ht_tensor net(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(B, I));
    ht_tensor w = ht_param(ht_shape(O, I), ht_normal(0.1), "layer"), b = ht_param(ht_shape(O), ht_zeros(), "b");
#pragma hspmd dims(w: out)
#pragma hspmd dims(x: batch)
    ht_tensor y = ht_linear(x, w, b);
    return ht_mean(ht_mul(y, y));
}
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}
int main(int argc, char **argv)
{
    ht_session *s = ht_open(&argc, &argv);
    ht_program *p = ht_train(s, net, ht_adamw(.lr = 0.01f));
    float x[B * I];
    for (int i = 0; i < B * I; i++)
        x[i] = (float)(i % 17) / 17;
    int64_t done = ht_resume(s, argv[1]);
    printf("resumed %lld, note %g\n", (long long)done, ht_noted_value(s, "tokens", -1));
    double longest = 0;
    for (int i = (int)done; i < atoi(argv[2]); i++) {
        double began = now();
        printf("%d %.9g\n", i, ht_step(p, ht_feed("x", x)));
        if ((i + 1) % 2 == 0)
            ht_save(s, argv[1], ht_note("tokens", 100.25 * (i + 1)));
        longest = now() - began > longest ? now() - began : longest;
    }
    printf("longest %.3f\n", longest);
    if (argc > 3)
        ht_save(s, argv[3], ht_note("tokens", ht_noted_value(s, "tokens", -1)));
    return 0;
}
