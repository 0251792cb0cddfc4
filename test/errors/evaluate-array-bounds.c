// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    int n[3] = {1, 2, 3}, k = 3;
    x = ht_scale(x, n[k]);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}evaluate-array-bounds.c:9:23: error: index 3 is outside an array of 3
// CHECK-NEXT: {{^}}    9 |     x = ht_scale(x, n[k]);
// CHECK-NEXT: {{^}}      |                       ^
