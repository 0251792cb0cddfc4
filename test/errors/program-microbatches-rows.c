// RUN: not %hetucc --strategy=s -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>
#pragma hspmd strategy s
#pragma hspmd   pipeline microbatches(2)
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy
/* The rows of the batch are queries and keys of one another. */
static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 2, 5));
    ht_tensor w = ht_param(ht_shape(5, 5), ht_normal(0.5f), "w");
#pragma hspmd dims(x: batch)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_attention(y, y, y, HT_NONE, true));
}
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.2f));
    return 0;
}

// CHECK: {{.*}}program-microbatches-rows.c:14:20: error: ht_attention_stats needs the whole batch at once, so the batch cannot run in 2 micro-batches
// CHECK-NEXT: {{^}}   14 |     return ht_mean(ht_attention(y, y, y, HT_NONE, true));
// CHECK-NEXT: {{^}}      |                    ^
// CHECK-NEXT: {{.*}}program-microbatches-rows.c:4:17: note: use microbatches(1), or compute this per row
