// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = x[i..] % 2
ht_tensor odd(ht_tensor x);

static ht_tensor loss(void)
{
    return ht_mean(odd(ht_param(ht_shape(4, 6), ht_normal(0.1f), "w")));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}remainder.c:9:20: error: odd: % takes integers, and x is floating-point; write x - y * floorf(x / y)
// CHECK-NEXT: {{^}}    9 |     return ht_mean(odd(ht_param(ht_shape(4, 6), ht_normal(0.1f), "w")));
// CHECK-NEXT: {{^}}      |                    ^
