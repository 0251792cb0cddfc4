/* Gradient accumulation: four micro-batches give what the whole batch gives, on one rank and on two.

RUN: %hetucc -O1 --strategy=whole %s -o %t.whole && %t.whole > %t.expected
RUN: %hetucc -O1 --strategy=four %s -o %t.four && %t.four > %t.actual && diff %t.expected %t.actual
RUN: %hetucc -O1 --strategy=two %s -o %t.two && env HETU_CHECK=1 %mpirun 2 %t.two > %t.actual && diff %t.expected %t.actual
RUN: FileCheck %s < %t.expected
CHECK: step 9 learns

RUN: rm -rf %t.c && %hetucc --strategy=two --emit=c -o %t.c %s
RUN: FileCheck %s --check-prefix=ROLE < %t.c/microbatches.role0.c
RUN: FileCheck %s --check-prefix=IMAGE < %t.c/microbatches.image.c
RUN: cd %t.c && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c microbatches.image.c microbatches.kernels.c microbatches.role0.c

An input lies whole in its slot; a micro-batch works on its part: 2 rows of 5 numbers.
ROLE: void microbatches_loss_train_role0_forward(ht_worker *r)
ROLE: ht_turn(r, -3, 40)
ROLE: void microbatches_loss_train_role0_backward(ht_worker *r)
ROLE: ht_accumulate(r, ht_arena(r, {{[0-9]+}}), ht_arena(r, {{[0-9]+}}), 15, HT_F32);
ROLE: void microbatches_loss_train_role0_update(ht_worker *r)
IMAGE: // kind, micro-batches, rows, first row, devices
IMAGE-NEXT: {0, 4, 4, 0, 2, 
*/
#include <hetu/hetu.h>

#include <stdio.h>

int rows = 16;
#pragma hspmd shape(rows)

#pragma hspmd strategy whole
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy four
#pragma hspmd   pipeline microbatches(4)
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy two
#pragma hspmd   split rows:dp
#pragma hspmd   pipeline microbatches(4)
#pragma hspmd     stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(rows, 5)), target = ht_input("target", HT_F32, ht_shape(rows, 3));
    ht_tensor w = ht_param(ht_shape(3, 5), ht_normal(0.5f), "w");
#pragma hspmd dims(x: rows, _)
    ht_tensor error = ht_sub(ht_linear(ht_layer_norm(x, HT_NONE, HT_NONE, 1e-5f), w, HT_NONE), target);
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.2f, .momentum = 0.5f));
    static float x[16 * 5], target[16 * 3];
    for (int i = 0; i < 16 * 5; i++)
        x[i] = (float)(i * i % 11) - 4;
    for (int i = 0; i < 16 * 3; i++)
        target[i] = x[i] / 4;
    float first = 0, last = 0;
    for (int step = 0; step < 10; step++) {
        last = ht_step(program, ht_feed("x", x), ht_feed("target", target));
        first = step ? first : last;
        printf("%.4f\n", last);
    }
    puts(last < 0.9f * first ? "step 9 learns" : "step 9 does not learn");
    return 0;
}
