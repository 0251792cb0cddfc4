// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) layers(0-9) mesh(dp:2) recompute(full)
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

// CHECK: {{.*}}strategy-layers.c:6:43: error: the model has no layer 0
// CHECK-NEXT: {{^}}    6 | #pragma hspmd   stage devices(0-1) layers(0-9) mesh(dp:2) recompute(full)
// CHECK-NEXT: {{^}}      |                                           ^
