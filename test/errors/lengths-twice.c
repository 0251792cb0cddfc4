// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

int seq = 12, batch = 4, wide = 6;
#pragma hspmd shape(seq, batch, wide)
#pragma hspmd padding(targets: -100)
#pragma hspmd strategy s
#pragma hspmd   pipeline microbatches(1) rows(2)
#pragma hspmd     stage devices(0)
#pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5, seq = 6)
#pragma hspmd     stage devices(1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq)), targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
    ht_tensor table = ht_param(ht_shape(9, 6), ht_normal(0.1f), "table");
    ht_tensor x = ht_embedding(table, tokens);
    return ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), targets));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}lengths-twice.c:10:60: error: "seq" is given a second value
// CHECK-NEXT: {{^}}   10 | #pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5, seq = 6)
// CHECK-NEXT: {{^}}      |                                                            ^
// CHECK-NEXT: {{.*}}lengths-twice.c:10:51: note: the first one is here
// CHECK-NEXT: {{^}}   10 | #pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5, seq = 6)
// CHECK-NEXT: {{^}}      |                                                   ^
