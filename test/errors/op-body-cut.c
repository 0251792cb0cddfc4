// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[r.., c] = centre(x[r.., c]) body(mean[r..] = x[r.., c] / size(c); y[r.., c] = x[r.., c] - mean[r..]) grad(none)
ht_tensor centre(ht_tensor x);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-body-cut.c:4:18: error: the factor 'c' goes along the rows of the clause body, which may not be cut: say replicate(c)
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[r.., c] = centre(x[r.., c]) body(mean[r..] = x[r.., c] / size(c); y[r.., c] = x[r.., c] - mean[r..]) grad(none)
// CHECK-NEXT: {{^}}      |                  ^
