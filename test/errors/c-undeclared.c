// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_relus(x);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}c-undeclared.c:8:9: error: call to undeclared function 'ht_relus'; ISO C99 and later do not support implicit function declarations
// CHECK-NEXT: {{^}}    8 |     x = ht_relus(x);
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}c-undeclared.c:8:9: note: did you mean "ht_relu"?
// CHECK-NEXT: {{^}}    8 |     x = ht_relus(x);
// CHECK-NEXT: {{^}}      |         ^
// CHECK-NEXT: {{.*}}c-undeclared.c:8:7: error: assigning to 'ht_tensor' (aka 'struct ht_tensor') from incompatible type 'int'
// CHECK-NEXT: {{^}}    8 |     x = ht_relus(x);
// CHECK-NEXT: {{^}}      |       ^
