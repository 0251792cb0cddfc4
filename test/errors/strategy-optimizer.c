/* `optimizer NAME`: a strategy of the program, which has devices that this one has and leads back to none.

RUN: not %hetucc --emit=c --strategy=a %s -o %t 2>&1 | FileCheck %s --check-prefix=ALONE
ALONE: strategy-optimizer.c:[[#]]:27: error: the program has no strategy "b"
ALONE-NEXT: #pragma hspmd   optimizer b
ALONE-NEXT: {{^ +\| +\^}}
ALONE: note: "a" keeps its states as that one does: give both, with --strategy=b

RUN: not %hetucc --emit=c --strategy=a --strategy=b %s -o %t 2>&1 | FileCheck %s --check-prefix=DEVICES
DEVICES: strategy-optimizer.c:[[#]]:27: error: under "b" device 2 keeps a part of w, and "a" does not use that device
DEVICES: note: give it to a stage here, or name a strategy whose devices are among these

RUN: not %hetucc --emit=c --strategy=c --strategy=d %s -o %t 2>&1 | FileCheck %s --check-prefix=CIRCLE
CIRCLE: error: no strategy says where the states of "c" lie: its "optimizer" leads back to itself
CIRCLE: error: no strategy says where the states of "d" lie: its "optimizer" leads back to itself

RUN: not %hetucc --emit=c --strategy=e %s -o %t 2>&1 | FileCheck %s --check-prefix=ITSELF
ITSELF: error: no strategy says where the states of "e" lie: its "optimizer" leads back to itself

RUN: echo 'optimizer x' > %t.twice && echo 'optimizer y' >> %t.twice && not %hetucc --emit=c --strategy=%t.twice %s -o %t 2>&1 | FileCheck %s --check-prefix=TWICE
TWICE: error: the statement "optimizer" stands here a second time

Between two that keep states alike nothing moves; the text of a strategy says so, too.
RUN: %hetucc --emit=c -Rswitch --strategy=b --strategy=f --strategy=g %s -o %t.folder 2>&1 | FileCheck %s --check-prefix=ALIKE
ALIKE: remark: loss goes from strategy "f" to "g" with 0 bytes received in all, messages: 0, windows: 0
RUN: %hetucc --emit=ir --strategy=b --strategy=f %s -o - | FileCheck %s --check-prefix=TEXT
TEXT: strategy f
TEXT: optimizer b
*/
#include <hetu/hetu.h>

#pragma hspmd strategy a
#pragma hspmd   optimizer b
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy
#pragma hspmd strategy b
#pragma hspmd   split rows:dp
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-2) mesh(dp:3)
#pragma hspmd end strategy
#pragma hspmd strategy c
#pragma hspmd   optimizer d
#pragma hspmd end strategy
#pragma hspmd strategy d
#pragma hspmd   optimizer c
#pragma hspmd end strategy
#pragma hspmd strategy e
#pragma hspmd   optimizer e
#pragma hspmd end strategy
#pragma hspmd strategy f
#pragma hspmd   optimizer b
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy
#pragma hspmd strategy g
#pragma hspmd   optimizer f
#pragma hspmd   split outs:tp
#pragma hspmd   stage devices(0-3) mesh(tp:4)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(8, 7));
    ht_tensor w = ht_param(ht_shape(5, 7), ht_normal(0.1f), "w");
#pragma hspmd dims(x: rows, _)
#pragma hspmd dims(w: outs, _)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-3f));
    float rows[8 * 7] = {0};
    return ht_step(program, ht_feed("x", rows)) < 0;
}
