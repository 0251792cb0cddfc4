// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor block(ht_tensor x)
{
    ht_tensor w = ht_param(ht_shape(3, 7), ht_normal(0.1f), "w");
    return ht_mean(ht_linear(x, w, HT_NONE));
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    return block(x);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}helper-frames.c:7:20: error: ht_linear: dimension 1 of w has extent 7, but dimension 1 of x has 6; they must be equal (factor i)
// CHECK-NEXT: {{^}}    7 |     return ht_mean(ht_linear(x, w, HT_NONE));
// CHECK-NEXT: {{^}}      |                    ^
// CHECK-NEXT: {{.*}}helper-frames.c:12:19: note: x is made here: f32[4, 6]
// CHECK-NEXT: {{^}}   12 |     ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}helper-frames.c:6:19: note: w is made here: f32[3, 7]
// CHECK-NEXT: {{^}}    6 |     ht_tensor w = ht_param(ht_shape(3, 7), ht_normal(0.1f), "w");
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}helper-frames.c:13:12: note: in the call of block
// CHECK-NEXT: {{^}}   13 |     return block(x);
// CHECK-NEXT: {{^}}      |            ^
