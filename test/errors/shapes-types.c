// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(ht_cast(ht_softmax(ht_cast(x, HT_F64)), HT_F32), w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-types.c:8:38: error: ht_softmax: the kernel does not work in f64, the element type of x; convert it first with ht_cast
// CHECK-NEXT: {{^}}    8 |     return ht_mean(ht_linear(ht_cast(ht_softmax(ht_cast(x, HT_F64)), HT_F32), w, HT_NONE));
// CHECK-NEXT: {{^}}      |                                      ^
// CHECK-NEXT: {{.*}}shapes-types.c:8:49: note: x is made here: f64[4, 6]
// CHECK-NEXT: {{^}}    8 |     return ht_mean(ht_linear(ht_cast(ht_softmax(ht_cast(x, HT_F64)), HT_F32), w, HT_NONE));
// CHECK-NEXT: {{^}}      |                                                 ^
