// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_concat(ht_list(x, w), 1);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-concat.c:8:9: error: ht_concat_at: dimension 0 of xs has extent 3, but dimension 0 of xs has 4; they must be equal (factor a)
// CHECK-NEXT: {{^}}    8 |     x = ht_concat(ht_list(x, w), 1);
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}shapes-concat.c:6:19: note: xs is made here: f32[4, 6]
// CHECK-NEXT: {{^}}    6 |     ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}shapes-concat.c:7:19: note: xs is made here: f32[3, 6]
// CHECK-NEXT: {{^}}    7 |     ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}shapes-concat.c:8:9: note: in the call of ht_concat
// CHECK-NEXT: {{^}}    8 |     x = ht_concat(ht_list(x, w), 1);
// CHECK-NEXT: {{^}}      |         ^
