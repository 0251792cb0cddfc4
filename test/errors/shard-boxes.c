// An operator that takes no elements in any order is given pieces of several boxes by an edited text alone: deduction converts them.
// RUN: %hetucc --emit=ir --stop-after=propagate_layouts %s | sed 's/\(for "operand x of ht_softmax".*layout<\)[^>]*>/\1split 0 inner ([0]{} | [1,2]{0:2})>/' > %t.ir
// RUN: rm -f %t.o && not %hetucc -c %s --resume=%t.ir -o %t.o 2>&1 | FileCheck %s --strict-whitespace
// RUN: not ls %t.o
// RUN: %hetucc -c %s -o %t.o
#include <hetu/hetu.h>

#pragma hspmd strategy three
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-2) mesh(dp:3)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(6, 4));
    ht_tensor bias = ht_param(ht_shape(6, 4), ht_normal(1), "bias");
#pragma hspmd dims(x: rows, _)
#pragma hspmd shard(bias: split 0 inner ([0,1]{0:2} | [2]{}))
    return ht_mean(ht_mul(x, ht_softmax(bias)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 1));
    return 0;
}

// CHECK: {{.*}}shard-boxes.c:19:30: error: "ht_softmax" would run on pieces that are several boxes; an operator that is not elementwise needs one box a device
// CHECK-NEXT: {{^}}   19 |     return ht_mean(ht_mul(x, ht_softmax(bias)));
// CHECK-NEXT: {{^}}      |                              ^
// CHECK-NEXT: {{.*}}shard-boxes.c:19:30: note: the pieces are those of this value; convert it with `reshard` before
