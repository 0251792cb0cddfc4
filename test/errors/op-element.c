// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = twice(x[i..]) dtype(y: wider) kernel(twice_kernel) grad(none)
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

// CHECK: {{.*}}op-element.c:4:50: error: 'wider' is not an element type, nor an operand, nor a parameter of type ht_dtype
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = twice(x[i..]) dtype(y: wider) kernel(twice_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                  ^
// CHECK-NEXT: {{.*}}op-element.c:4:50: note: did you mean 'wide'?
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = twice(x[i..]) dtype(y: wider) kernel(twice_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                  ^
