/* A loss over the elements that count, in micro-batches: what inputs alone add up to is known before the loop over them, so each micro-batch
 * is divided by the number that counts in the whole batch.

RUN: %hetucc -O1 --strategy=whole %s -o %t.whole && %t.whole > %t.expected
RUN: %hetucc -O1 --strategy=three %s -o %t.three && %t.three | diff %t.expected -
RUN: %hetucc -O1 --strategy=uneven %s -o %t.uneven && env HETU_CHECK=1 %mpirun 4 %t.uneven | diff %t.expected -
RUN: %hetucc -O1 --strategy=sequence %s -o %t.sequence && env HETU_CHECK=1 %mpirun 3 %t.sequence | diff %t.expected -
RUN: %hetucc -O1 --strategy=zero %s -o %t.zero && env HETU_CHECK=1 %mpirun 2 %t.zero | diff %t.expected -
RUN: FileCheck %s < %t.expected
CHECK: step 11 learns
*/
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 12, SEQ = 5, WIDTH = 7, CLASSES = 11, IGNORED = -100 };

#pragma hspmd strategy whole
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy three
#pragma hspmd   pipeline microbatches(3)
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp classes:tp
#pragma hspmd   pipeline microbatches(2)
#pragma hspmd     stage devices(0-3) mesh(dp:2 by 3:1, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy sequence
#pragma hspmd   split seq:sp
#pragma hspmd   pipeline microbatches(6)
#pragma hspmd     stage devices(0-2) mesh(sp:3)
#pragma hspmd end strategy

#pragma hspmd strategy zero
#pragma hspmd   split batch:dp
#pragma hspmd   zero 1
#pragma hspmd   pipeline microbatches(4)
#pragma hspmd     stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

#pragma hspmd op y[i..] = target[i..] == -100 ? 0.0f : 1.0f dtype(y: f32) grad(none)
ht_tensor counted(ht_tensor target);

/* The mean over the targets that are not ignored, and a penalty weighed by a mask, over the mask's sum. */
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, SEQ, WIDTH)), mask = ht_input("mask", HT_F32, ht_shape(ROWS, SEQ));
    ht_tensor target = ht_input("target", HT_I32, ht_shape(ROWS, SEQ));
    ht_tensor w = ht_param(ht_shape(CLASSES, WIDTH), ht_normal(0.5f), "w");
#pragma hspmd dims(x, mask, target: batch, seq)
#pragma hspmd dims(w: classes, _)
    ht_tensor nll = ht_cross_entropy(ht_linear(x, w, HT_NONE), target);
    ht_tensor likelihood = ht_div(ht_sum(nll), ht_sum(counted(target)));
    return ht_add(likelihood, ht_scale(ht_div(ht_sum(ht_mul(ht_mul(nll, nll), mask)), ht_sum(ht_exp(mask))), 0.1f));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 2e-2f));
    static float x[ROWS * SEQ * WIDTH], mask[ROWS * SEQ];
    static int32_t target[ROWS * SEQ];
    for (int i = 0; i < ROWS * SEQ * WIDTH; i++)
        x[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int i = 0; i < ROWS * SEQ; i++) {
        mask[i] = (float)(i * 5 % 3);
        target[i] = i % 4 && i < 50 ? i * i % CLASSES : IGNORED;
    }
    float first = 0, last = 0;
    for (int step = 0; step < 12; step++) {
        last = ht_step(program, ht_feed("x", x), ht_feed("mask", mask), ht_feed("target", target));
        first = step ? first : last;
        printf("%.4f\n", last);
    }
    puts(last < 0.9f * first ? "step 11 learns" : "step 11 does not learn");
    return 0;
}
