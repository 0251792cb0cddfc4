// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   schedule 1f1
#pragma hspmd   stage devices(0)
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

// CHECK: {{.*}}strategy-schedule-unknown.c:5:26: error: expected gpipe, 1f1b, interleaved or zero_bubble, found "1f1"
// CHECK-NEXT: {{^}}    5 | #pragma hspmd   schedule 1f1
// CHECK-NEXT: {{^}}      |                          ^
// CHECK: {{.*}}strategy-schedule-unknown.c:5:26: note: did you mean "1f1b"?
// CHECK-NEXT: {{^}}    5 | #pragma hspmd   schedule 1f1
// CHECK-NEXT: {{^}}      |                          ^
