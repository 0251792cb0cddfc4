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
    ht_train(session, loss, ht_sgd(.lr = 0.1f), .dtype = HT_BF16);
    ht_train(session, loss, ht_sgd(.lr = 0.2f));
    return 0;
}

// CHECK: {{.*}}program-dtypes.c:15:5: error: loss computes in bf16 elsewhere and in f32 here; one program has one type
// CHECK-NEXT: {{^}}   15 |     ht_train(session, loss, ht_sgd(.lr = 0.2f));
// CHECK-NEXT: {{^}}      |     ^
