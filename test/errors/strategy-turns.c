// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   turns batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, width)
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}strategy-turns.c:5:29: error: no pieces of the dimension "batch" move on in turns along the axis "dp"
// CHECK-NEXT: {{^}}    5 | #pragma hspmd   turns batch:dp
// CHECK-NEXT: {{^}}      |                             ^
// CHECK: {{.*}}strategy-turns.c:9:18: note: no operator of loss has pieces of it along one dimension and sums over another, as attention does
