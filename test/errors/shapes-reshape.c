// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_reshape(x, ht_shape(5, 5));
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-reshape.c:8:9: error: ht_reshape: f32[4, 6] has 24 elements, which the shape [5, 5] cannot hold
// CHECK-NEXT: {{^}}    8 |     x = ht_reshape(x, ht_shape(5, 5));
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}shapes-reshape.c:6:19: note: x is made here: f32[4, 6]
// CHECK-NEXT: {{^}}    6 |     ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
// CHECK-NEXT: {{^}}      |                   ^
