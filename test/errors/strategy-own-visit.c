// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy fold
#pragma hspmd   pipeline microbatches(2)
#pragma hspmd     stage devices(0) layers(0, 2)
#pragma hspmd     stage devices(1) layers(1)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6)), first = HT_NONE;
    for (int l = 0; l < 3; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = ht_linear(l == 2 ? ht_add(x, first) : x, ht_param(ht_shape(6, 6), ht_normal(0.1f), "w"), HT_NONE);
        first = l == 0 ? x : first;
    }
    return ht_mean(x);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}strategy-own-visit.c:6:46: error: a stage does not hand values from one of its ranges of layers to another in this version; put a range of another stage between them, or join the ranges
// CHECK-NEXT: {{^}}    6 | #pragma hspmd     stage devices(0) layers(0, 2)
// CHECK-NEXT: {{^}}      |                                              ^
// CHECK: {{.*}}strategy-own-visit.c:16:{{[0-9]+}}: note: this reads what the stage makes in its other range
