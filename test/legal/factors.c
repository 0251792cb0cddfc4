/* Factors of a dimension may be 1, as with as many key heads as query heads: what is named elsewhere says which.

RUN: %cc -DREP=1 %s -o %t.plain1 %flags && %t.plain1 > %t.1
RUN: %cc -DREP=3 %s -o %t.plain3 %flags && %t.plain3 > %t.3
RUN: %hetucc -DREP=1 %s -o %t.one && %mpirun 2 %t.one | diff %t.1 -
RUN: %hetucc -DREP=3 %s -o %t.three && %mpirun 2 %t.three | diff %t.3 -

Which factor of 4 has the name is not known where neither is named by itself.
RUN: not %hetucc -DREP=1 -DUNKNOWN %s -o %t.none 2>&1 | FileCheck %s
CHECK: factors.c:[[#]]:[[#]]: error: "(kv rep)" names 2 factors of a dimension of 4 that the model never splits by a reshape
*/
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 2, PLACES = 3, KV = 4, WIDTH = 5 };

#pragma hspmd strategy two
#pragma hspmd   split kv:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-1) mesh(tp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, PLACES, 6));
    ht_tensor w = ht_param(ht_shape(KV * REP * WIDTH, 6), ht_normal(0.5f), "w");
    ht_tensor q = ht_linear(x, w, HT_NONE);
#ifdef UNKNOWN
    ht_tensor heads = ht_param(ht_shape(KV * REP), ht_ones(), "heads");
#pragma hspmd dims(heads: (kv rep))
    return ht_add(ht_mean(ht_gelu(q)), ht_mean(heads));
#else
#pragma hspmd dims(q: batch, _, (kv rep _))
    ht_tensor heads = ht_reshape(q, ht_shape(ROWS, PLACES, KV, REP, WIDTH));
#pragma hspmd dims(heads: batch, _, kv, rep, _)
    ht_tensor merged = ht_reshape(heads, ht_shape(ROWS, PLACES, KV * REP, WIDTH));
#pragma hspmd dims(merged: batch, _, (kv rep), _)
    return ht_mean(ht_mul(ht_gelu(merged), ht_softmax(merged)));
#endif
}

int main(int argc, char **argv)
{
    float x[ROWS * PLACES * 6];
    for (int i = 0; i < ROWS * PLACES * 6; i++)
        x[i] = (float)(i % 7) - 3;
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_adamw(.lr = 0.01f));
    for (int i = 0; i < 3; i++)
        printf("%.5f\n", ht_step(program, ht_feed("x", x)));
}
