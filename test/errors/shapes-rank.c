// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_matmul(x, ht_reshape(w, ht_shape(18)));
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-rank.c:8:9: error: ht_matmul: w has 1 dimension, but the rule's w[b.., k, n] needs 2
// CHECK-NEXT: {{^}}    8 |     x = ht_matmul(x, ht_reshape(w, ht_shape(18)));
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}shapes-rank.c:8:22: note: w is made here: f32[18]
// CHECK-NEXT: {{^}}    8 |     x = ht_matmul(x, ht_reshape(w, ht_shape(18)));
// CHECK-NEXT: {{^}}      |                      ^
