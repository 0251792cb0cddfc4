// RUN: not %hetucc --strategy=short --strategy=long -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

int seq = 4;
#pragma hspmd shape(seq)

#pragma hspmd strategy short (seq = 4)
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy
#pragma hspmd strategy long (seq = 8)
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, seq));
    ht_tensor w = ht_param(ht_shape(3, seq), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_train(ht_open(&argc, &argv), loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}switch-shape.c:17:19: error: the parameter "w" has the shape (3, 8) under strategy "long", and (3, 4) under strategy "short"; give it a size that depends on no shape variable
// CHECK-NEXT: {{^}}   17 |     ht_tensor w = ht_param(ht_shape(3, seq), ht_normal(0.1f), "w");
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NOT: error
