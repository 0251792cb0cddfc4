// RUN: not %hetucc --strategy=dp2 --strategy=dp2 -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, _)
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_train(ht_open(&argc, &argv), loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: <command line>:1:12: error: the program has a strategy "dp2" already; ht_switch and HETU_STRATEGY take its name
// CHECK-NEXT: {{^}}    1 | --strategy=dp2
// CHECK-NEXT: {{^}}      |            ^
