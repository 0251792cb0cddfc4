// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f), .dtype = argc > 1 ? HT_F32 : HT_BF16);
    return 0;
}

// CHECK: {{.*}}program-dtype-unknown.c:14:58: error: the dtype of a program is not known at compile time; write HT_F32 or HT_BF16
// CHECK-NEXT: {{^}}   14 |     ht_train(session, loss, ht_sgd(.lr = 0.1f), .dtype = argc > 1 ? HT_F32 : HT_BF16);
// CHECK-NEXT: {{^}}      |                                                          ^
