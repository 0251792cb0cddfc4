// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    ht_tensor b = ht_param(ht_shape(5), ht_zeros(), "b");
    x = ht_add(x, b);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-add.c:9:9: error: ht_add_at: dimension 0 of z has extent 5, but dimension 1 of x has 6; they must be equal (factor b)
// CHECK-NEXT: {{^}}    9 |     x = ht_add(x, b);
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}shapes-add.c:6:19: note: x is made here: f32[4, 6]
// CHECK-NEXT: {{^}}    6 |     ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}shapes-add.c:8:19: note: z is made here: f32[5]
// CHECK-NEXT: {{^}}    8 |     ht_tensor b = ht_param(ht_shape(5), ht_zeros(), "b");
// CHECK-NEXT: {{^}}      |                   ^
