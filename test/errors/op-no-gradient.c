// RUN: not %hetucc %s -o %t.out 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = twice(x[i..]) kernel(twice_kernel) grad(twice_gradient)
ht_tensor twice(ht_tensor x);
void twice_gradient(ht_grad *g);
void twice_kernel(const ht_call *call);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = twice(x);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-no-gradient.c:4:67: error: twice_gradient has no body in what hetucc is given, so it cannot be evaluated
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = twice(x[i..]) kernel(twice_kernel) grad(twice_gradient)
// CHECK-NEXT: {{^}}      |                                                                   ^
// CHECK-NEXT: {{.*}}op-no-gradient.c:6:6: note: it is declared here; give hetucc the file that has its body, too, which must include <hetu/hetu.h>, or the object or archive that hetucc -c made of it
// CHECK-NEXT: {{^}}    6 | void twice_gradient(ht_grad *g);
// CHECK-NEXT: {{^}}      |      ^
