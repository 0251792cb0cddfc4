// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    ht_tensor v = ht_input("x", HT_F32, ht_shape(4, 5));
    (void)v;
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}input-twice.c:8:19: error: the input "x" was made before with another shape or type
// CHECK-NEXT: {{^}}    8 |     ht_tensor v = ht_input("x", HT_F32, ht_shape(4, 5));
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}input-twice.c:6:19: note: it was made here
// CHECK-NEXT: {{^}}    6 |     ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
// CHECK-NEXT: {{^}}      |                   ^
