/* CC=clang compiles and links what hetucc writes, loops over several threads included. Without a clang that links OpenMP, lit says UNSUPPORTED and why.

REQUIRES: clang
RUN: clang %s -o %t.plain %flags && %t.plain > %t.txt
RUN: env CC=clang %hetucc %s -o %t.one && env OMP_NUM_THREADS=2 %t.one | diff %t.txt -
RUN: env CC=clang %hetucc -c %s -o %t.o && env CC=clang %hetucc %t.o -o %t.two && %t.two | diff %t.txt -
*/
#include <hetu/hetu.h>

#include <stdio.h>

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(300, 400), ht_normal(1), "w");
    return ht_mean(ht_mul(ht_gelu(w), ht_softmax(w)));
}

int main(int argc, char **argv)
{
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_adamw(.lr = 0.01f));
    for (int i = 0; i < 3; i++)
        printf("%.6f\n", ht_step(program));
}
