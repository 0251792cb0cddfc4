/* Strategies of a program that main goes through: sizes that it looks for, and what it may not ask for.

RUN: %hetucc -Rswitch --strategy=short --strategy=long --strategy=twin -O1 %s -o %t 2>&1 | FileCheck %s --check-prefix=REMARK
REMARK: switch.c:[[#]]:24: remark: loss goes from strategy "short" to "long" with 24 bytes received in all, messages: 1, windows: 1, rounds of a window: 1, at most 24 bytes sent by one device
REMARK: remark: loss goes from strategy "long" to "twin" with 0 bytes received in all, messages: 0, windows: 0

RUN: %mpirun 2 %t fit | FileCheck %s --check-prefix=FIT
FIT: fits 2: 4
FIT-NEXT: fits 8: 8
FIT-NEXT: learned 4 and 8 alike
RUN: %cc %s -o %t.plain %flags && %t.plain fit | FileCheck %s --check-prefix=PLAIN
PLAIN: fits 2: 2
PLAIN-NEXT: fits 8: 8
PLAIN-NEXT: learned 2 and 8 alike

RUN: not %mpirun 2 %t large 2>&1 | FileCheck %s --check-prefix=LARGE
LARGE: hetu: rank 0: ht_fit looks for a value from 9 on, and the strategies of the model loss have 8 at most

RUN: not %mpirun 2 %t other 2>&1 | FileCheck %s --check-prefix=OTHER
OTHER: hetu: rank 0: ht_fit was given a variable that the model loss does not read

RUN: not %mpirun 2 %t name 2>&1 | FileCheck %s --check-prefix=NAME
NAME: hetu: rank 0: the model loss has no strategy "lang"; it was compiled with "short", "long", "twin"

RUN: not %mpirun 2 %t values 2>&1 | FileCheck %s --check-prefix=VALUES
VALUES: hetu: rank 0: switch.c:[[#]]: the model loss reads "seq", which was 8 when it was compiled for strategy "long" and is 4 now; set it before ht_switch, or choose the strategy that has it

RUN: not %mpirun 2 %t none 2>&1 | FileCheck %s --check-prefix=NONE
NONE: hetu: rank 0: no strategy of the model loss ("short", "long", "twin") was compiled with the variables as they are set

RUN: not %mpirun 2 %t step 2>&1 | FileCheck %s --check-prefix=STEP
STEP: hetu: rank 0: switch.c:[[#]]: the model loss reads "seq", which was 4 when it was compiled for strategy "short" and is 8 now; call ht_switch, which goes to strategy "long"

RUN: not %mpirun 2 %t unfed 2>&1 | FileCheck %s --check-prefix=UNFED
UNFED: hetu: rank 0: the input "x" (switch.c:[[#]]) was never fed
RUN: not %t.plain unfed 2>&1 | FileCheck %s --check-prefix=UNFED-PLAIN
UNFED-PLAIN: input x was never fed
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <string.h>

int seq = 4, unread;
#pragma hspmd shape(seq)

#pragma hspmd strategy short
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy
#pragma hspmd strategy long (seq = 8)
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy
#pragma hspmd strategy twin
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, seq, 3));
    ht_tensor w = ht_param(ht_shape(1, 3), ht_normal(0.1f), "w");
#pragma hspmd dims(x: rows, _, _)
    return ht_mean(ht_linear(x, w, HT_NONE));
}

static float x[4 * 16 * 3], weights[2][3];

/* A step on rows of `want` tokens or more; the weights afterwards. The gradient is the mean of the rows, which is the same for each length. */
static void learn(ht_session *session, ht_program *program, int64_t want, float *to)
{
    float zero[3] = {0};
    seq = (int)ht_fit(program, &seq, want);
    printf("fits %d: %d\n", (int)want, seq);
    ht_switch(program, NULL);
    ht_set_param(session, "w", zero, 3);
    ht_step(program, ht_feed_n("x", x, (int64_t)12 * seq));
    ht_get_param(session, "w", to, 3);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.5f));
    const char *what = argv[argc - 1];
    for (int i = 0; i < 4 * 16 * 3; i++)
        x[i] = (float)(i % 3);
    if (!strcmp(what, "fit")) {
        learn(session, program, 2, weights[0]);
        int first = seq;
        learn(session, program, 8, weights[1]);
        printf("learned %d and %d %s\n", first, seq, memcmp(weights[0], weights[1], sizeof weights[0]) ? "apart" : "alike");
    }
    if (!strcmp(what, "large"))
        seq = (int)ht_fit(program, &seq, 9);
    if (!strcmp(what, "other"))
        unread = (int)ht_fit(program, &unread, 1);
    if (!strcmp(what, "name"))
        ht_switch(program, "lang");
    if (!strcmp(what, "values"))
        ht_switch(program, "long");
    if (!strcmp(what, "none")) {
        seq = 5;
        ht_switch(program, NULL);
    }
    if (!strcmp(what, "step") || !strcmp(what, "unfed")) {
        ht_step(program, ht_feed_n("x", x, (int64_t)12 * seq));
        seq = 8;
        if (!strcmp(what, "unfed"))
            ht_switch(program, NULL);
        ht_step(program);
    }
    return 0;
}
