// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

int batch = 4;
#pragma hspmd shape(batsh)

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

// CHECK: {{.*}}shape-unknown.c:5:21: error: "batsh" is no variable at file scope
// CHECK-NEXT: {{^}}    5 | #pragma hspmd shape(batsh)
// CHECK-NEXT: {{^}}      |                     ^
// CHECK-NEXT: {{.*}}shape-unknown.c:5:21: note: did you mean "batch"?
// CHECK-NEXT: {{^}}    5 | #pragma hspmd shape(batsh)
// CHECK-NEXT: {{^}}      |                     ^
