// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = twice(x[i..]) types(f32, i16) kernel(twice_kernel) grad(none)
ht_tensor twice(ht_tensor x);

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

// CHECK: {{.*}}op-element-types.c:4:52: error: expected one of f32, bf16, f64, i32, i64, not 'i16'
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = twice(x[i..]) types(f32, i16) kernel(twice_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                    ^
