// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

int seq = 12, batch = 4;
#pragma hspmd shape(seq, batch)
#pragma hspmd padding(targets: -100)
#pragma hspmd strategy s
#pragma hspmd   pipeline microbatches(1) rows(2)
#pragma hspmd     stage devices(0)
#pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5)
#pragma hspmd     stage devices(1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq)), targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
    ht_tensor table = ht_param(ht_shape(9, 6), ht_normal(0.1f), "table");
#pragma hspmd dims(tokens: batch, seq)
    ht_tensor x = ht_embedding(table, tokens), q = ht_reshape(x, ht_shape(batch, seq, 1, 6));
    x = ht_reshape(ht_attention(q, q, q, HT_NONE, false), ht_shape(batch, seq, 6));
    return ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), targets));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}lengths-behind.c:20:20: error: this reads what stands behind the length of a row along "seq", so a pipeline that reads less gives something else than the padded batch
// CHECK-NEXT: {{^}}   20 |     x = ht_reshape(ht_attention(q, q, q, HT_NONE, false), ht_shape(batch, seq, 6));
// CHECK-NEXT: {{^}}      |                    ^
// CHECK-NEXT: {{.*}}lengths-behind.c:10:51: note: the lengths are here; a loss that leaves out what the pragma padding names, causal attention and masks keep apart what is behind them; else give all pipelines the same
// CHECK-NEXT: {{^}}   10 | #pragma hspmd   pipeline microbatches(1) rows(2) (seq = 5)
// CHECK-NEXT: {{^}}      |                                                   ^
