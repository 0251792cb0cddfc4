// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_linear(x, w, HT_NONE);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}no-loss.c:4:18: error: the loss that loss gives is no scalar: it has 2 dimensions
// CHECK-NEXT: {{^}}    4 | static ht_tensor loss(void)
// CHECK-NEXT: {{^}}      |                  ^
// CHECK-NEXT: {{.*}}no-loss.c:8:12: note: the value is made here; ht_mean makes a scalar of a tensor
// CHECK-NEXT: {{^}}    8 |     return ht_linear(x, w, HT_NONE);
// CHECK-NEXT: {{^}}      |            ^
