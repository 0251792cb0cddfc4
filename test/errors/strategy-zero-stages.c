// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy several
#pragma hspmd   zero 2
#pragma hspmd   pipeline microbatches(2) rows(1)
#pragma hspmd     stage devices(0)
#pragma hspmd   pipeline microbatches(1) rows(2)
#pragma hspmd     stage devices(1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    return ht_mean(ht_linear(x, ht_param(ht_shape(3, 6), ht_normal(0.1f), "w"), HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}strategy-zero-stages.c:5:17: error: zero 2 and zero 3 are for strategies of one pipeline of one stage in this version; zero 1 cuts the optimizer's states
// CHECK-NEXT: {{^}}    5 | #pragma hspmd   zero 2
// CHECK-NEXT: {{^}}      |                 ^
