// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, width)
    ht_tensor y = ht_relu(x);
#pragma hspmd dims(y: rows, width)
    return ht_mean(ht_linear(y, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}dims-two-names.c:10:20: error: the dimension named "rows" here is "batch" elsewhere: operators tie the two together
// CHECK-NEXT: {{^}}   10 | #pragma hspmd dims(y: rows, width)
// CHECK-NEXT: {{^}}      |                    ^
// CHECK-NEXT: {{.*}}dims-two-names.c:8:20: note: "batch" was named here; give both one name, or leave one unnamed with _
// CHECK-NEXT: {{^}}    8 | #pragma hspmd dims(x: batch, width)
// CHECK-NEXT: {{^}}      |                    ^
