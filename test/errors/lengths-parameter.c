// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

int seq = 12, batch = 4, wide = 6;
#pragma hspmd shape(seq, batch, wide)
#pragma hspmd padding(targets: -100)
#pragma hspmd strategy s
#pragma hspmd   pipeline microbatches(1) rows(2)
#pragma hspmd     stage devices(0)
#pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5, wide = 3)
#pragma hspmd     stage devices(1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq)), targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
    ht_tensor table = ht_param(ht_shape(9, wide), ht_normal(0.1f), "table");
    ht_tensor x = ht_embedding(table, tokens);
    return ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), targets));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}lengths-parameter.c:10:60: error: the parameter "table" is another one with the lengths of this pipeline: (9, 6) with the strategy's, (9, 3) here
// CHECK-NEXT: {{^}}   10 | #pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5, wide = 3)
// CHECK-NEXT: {{^}}      |                                                            ^
// CHECK-NEXT: {{.*}}lengths-parameter.c:17:23: note: it is declared here; give it a size that depends on no shape variable
// CHECK-NEXT: {{^}}   17 |     ht_tensor table = ht_param(ht_shape(9, wide), ht_normal(0.1f), "table");
// CHECK-NEXT: {{^}}      |                       ^
