// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_slice(x, 1, 4, 6);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}assertion-slice.c:8:9: error: the assertion "start >= 0 && length >= 0 && start <= ht_extent(x, dim) - length && "a slice lies within its dimension"" does not hold
// CHECK-NEXT: {{^}}    8 |     x = ht_slice(x, 1, 4, 6);
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}assertion-slice.c:8:9: note: in the call of ht_slice
// CHECK-NEXT: {{^}}    8 |     x = ht_slice(x, 1, 4, 6);
// CHECK-NEXT: {{^}}      |         ^
