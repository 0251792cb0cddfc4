// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    int n = 0;
    while (n >= 0)
        n = n == 7 ? 0 : n + 1;
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}evaluate-endless-loop.c:9:5: error: this loop is too long to be evaluated at compile time, or does not end: after {{[0-9]+}} rounds and 200 million steps the evaluation was stopped
// CHECK-NEXT: {{^}}    9 |     while (n >= 0)
// CHECK-NEXT: {{^}}      |     ^
