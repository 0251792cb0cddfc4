// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = x[i..]
int n;
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

// CHECK: {{.*}}op-no-function.c:4:15: error: an op pragma stands in front of the declaration of a function
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = x[i..]
// CHECK-NEXT: {{^}}      |               ^
// CHECK-NEXT: {{.*}}op-no-function.c:5:5: note: this follows it instead
// CHECK-NEXT: {{^}}    5 | int n;
// CHECK-NEXT: {{^}}      |     ^
