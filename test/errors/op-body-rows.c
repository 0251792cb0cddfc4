// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[a, b, c] = centre(x[a, b, c]) replicate(b, c) body(s[a, b] = x[a, b, c]; t[a] = s[a, b]; y[a, b, c] = x[a, b, c] - t[a]) grad(none)
ht_tensor centre(ht_tensor x);

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

// CHECK: {{.*}}op-body-rows.c:4:18: error: the value 's' has some of the factors that other values lack; it must have all of them or none
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[a, b, c] = centre(x[a, b, c]) replicate(b, c) body(s[a, b] = x[a, b, c]; t[a] = s[a, b]; y[a, b, c] = x[a, b, c] - t[a]) grad(none)
// CHECK-NEXT: {{^}}      |                  ^
