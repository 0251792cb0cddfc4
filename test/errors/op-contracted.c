// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[r..] = rows(x[r.., c]) kernel(rows_kernel) grad(none)
ht_tensor rows(ht_tensor x);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = rows(x);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-contracted.c:4:39: error: the results lack the factor 'c': say reduction(+: c), reduction(max: c), merge(c: OPERATOR) or replicate(c)
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[r..] = rows(x[r.., c]) kernel(rows_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                       ^
