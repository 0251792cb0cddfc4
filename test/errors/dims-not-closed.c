// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, width
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}dims-not-closed.c:8:35: error: expected ")", found the end of the pragma
// CHECK-NEXT: {{^}}    8 | #pragma hspmd dims(x: batch, width
// CHECK-NEXT: {{^}}      |                                   ^
// CHECK-NEXT: {{.*}}dims-not-closed.c:8:19: note: to match this "("
// CHECK-NEXT: {{^}}    8 | #pragma hspmd dims(x: batch, width
// CHECK-NEXT: {{^}}      |                   ^
