// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   pipeline microbatches(2) rows(1)
#pragma hspmd   stage devices(0)
#pragma hspmd   pipeline
#pragma hspmd   stage devices(1)
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

// CHECK: {{.*}}strategy-rows-missing.c:7:17: error: where there are several pipelines, each says its rows(...)
// CHECK-NEXT: {{^}}    7 | #pragma hspmd   pipeline
// CHECK-NEXT: {{^}}      |                 ^
// CHECK: {{.*}}strategy-rows-missing.c:7:17: note: of one micro-batch, as in: pipeline microbatches(8) rows(4)
// CHECK-NEXT: {{^}}    7 | #pragma hspmd   pipeline
// CHECK-NEXT: {{^}}      |                 ^
