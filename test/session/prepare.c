/* Strategies that arrive while a program runs: by a name of the source, by a file, and those that cannot be had; the numbers are one device's.

RUN: mkdir -p %t.d && cp %s %t.d/prepare.c && cd %t.d
RUN: printf 'split outs:tp\nzero 1\nstage devices(0) mesh()\n' > bad.strategy
RUN: printf 'strategy late\nsplit outs:tp\nstage devices(1,3) mesh(tp:2)\nidle devices(0,2)\nend strategy\n' > new.strategy
RUN: %hetucc --strategy=old prepare.c -o p && %cc prepare.c -o plain %flags
RUN: env HETU_CHECK=1 %mpirun 4 ./p step prepare=fresh step fresh step old step fresh step prepare=pipe prepare=new.strategy seq=3 pipe step seq=4 late step old step new.strategy > found 2> messages
RUN: ./plain step prepare=fresh step fresh step old step fresh step prepare=pipe prepare=new.strategy seq=3 pipe step seq=4 late step old step new.strategy > wanted
RUN: diff found wanted && not grep hetu: messages
RUN: FileCheck %s --check-prefix=LAST < found
LAST: switch new.strategy: 1
LAST-NEXT: last loss

What cannot be had is said, and training goes on.
RUN: %mpirun 4 ./p prepare=large large step prepare=bad.strategy bad.strategy step > said 2>&1 && FileCheck %s --check-prefix=REFUSED < said
REFUSED-DAG: hetu: rank 0: ht_switch cannot go to strategy "large": it is for 7 devices, and 4 ranks run the program; training goes on under strategy "old"
REFUSED-DAG: bad.strategy:3:{{.*}}warning:
REFUSED-DAG: hetu: rank 0: ht_switch cannot go to strategy "bad.strategy": hetucc could not make it; training goes on under strategy "old"
REFUSED-DAG: last loss

The source must be as it was: both fingerprints are named.
RUN: sed -i 's/0[.]1f/0.2f/' prepare.c && %mpirun 4 ./p prepare=fresh fresh step > said 2>&1 && FileCheck %s --check-prefix=CHANGED < said
CHANGED-DAG: ht_switch cannot go to strategy "fresh": rank 0 runs another program than the one that it was made for: loss under strategy "old" is {{[0-9a-f]+}} (prepare.c strategies old, fresh on 4 devices, cpu, hetucc {{.*}}) there, and {{[0-9a-f]+}} (prepare.c strategy old on 4 devices, cpu, hetucc {{.*}}) here; its source, strategy files or hetucc have changed
CHANGED-DAG: last loss
RUN: not %hetucc --strategy=old --known=1 prepare.c -o p.so 2>&1 | FileCheck %s --check-prefix=KNOWN
KNOWN: warning: --known=1 leaves none of the 1 strategies to make
*/
#include <hetu/hetu.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
int seq = 4;
#pragma hspmd shape(seq)
#pragma hspmd strategy old
#pragma hspmd   split rows:dp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy
#pragma hspmd strategy fresh
#pragma hspmd   split outs:tp
#pragma hspmd   stage devices(0-2) mesh(tp:3)
#pragma hspmd   idle devices(3)
#pragma hspmd end strategy
#pragma hspmd strategy pipe (seq = 3)
#pragma hspmd   split rows:dp
#pragma hspmd   optimizer old
#pragma hspmd   pipeline microbatches(2) rows(2)
#pragma hspmd     stage devices(0-1) mesh(dp:2)
#pragma hspmd   pipeline microbatches(2) rows(2)
#pragma hspmd     stage devices(2-3) mesh(dp:2)
#pragma hspmd end strategy
#pragma hspmd strategy large
#pragma hspmd   split rows:dp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-6) mesh(dp:7)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(8, seq, 7));
    ht_tensor w = ht_param(ht_shape(5, 7), ht_normal(0.1f), "w");
#pragma hspmd dims(x: rows, seq, _)
#pragma hspmd dims(w: outs, _)
    ht_tensor y = ht_gelu(ht_linear(x, w, HT_NONE));
    return ht_mean(ht_mul(y, y));
}
static float rows[8 * 64 * 7];
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f));
    for (int i = 0; i < 8 * 64 * 7; i++) rows[i] = (float)(i % 11 - 5) / 5;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "seq=", 4))
            seq = atoi(argv[i] + 4);
        else if (!strcmp(argv[i], "step"))
            printf("step %d loss %.6f\n", i, ht_step(program, ht_feed_n("x", rows, (int64_t)56 * seq)));
        else if (!strncmp(argv[i], "prepare=", 8))
            ht_prepare(program, argv[i] + 8);
        else
            printf("switch %s: %d\n", argv[i], ht_switch(program, argv[i]));
    printf("last loss %.6f\n", ht_step(program, ht_feed_n("x", rows, (int64_t)56 * seq)));
}
