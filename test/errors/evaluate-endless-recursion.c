// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static int again(int n) { return n > 0 ? again(n) + 1 : 0; }

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_scale(x, again(1));
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}evaluate-endless-recursion.c:4:42: error: the recursion of again is deeper than 15000 calls
// CHECK-NEXT: {{^}}    4 | static int again(int n) { return n > 0 ? again(n) + 1 : 0; }
// CHECK-NEXT: {{^}}      |                                          ^
// CHECK-NEXT: {{.*}}evaluate-endless-recursion.c:4:42: note: in the call of again
// CHECK-NEXT: {{^}}    4 | static int again(int n) { return n > 0 ? again(n) + 1 : 0; }
// CHECK-NEXT: {{^}}      |                                          ^
