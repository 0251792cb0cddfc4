// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, -6), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-negative.c:7:19: error: dimension 1 of this shape is -6; extents are not negative
// CHECK-NEXT: {{^}}    7 |     ht_tensor w = ht_param(ht_shape(3, -6), ht_normal(0.1f), "w");
// CHECK-NEXT: {{^}}      |                   ^
