// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[i..] = twice(x[i..], ?more[]) plus(y: more) kernel(twice_kernel) grad(none)
ht_tensor twice(ht_tensor x, ht_tensor more);
void twice_kernel(const ht_call *call);

#pragma hspmd op y[i..] = 3 * x[i..] + ?more[i..] plus(y: more) grad(none)
ht_tensor thrice(ht_tensor x, ht_tensor more);

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(3), ht_normal(0.1f), "w");
    return ht_mean(thrice(twice(w, HT_NONE), HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-plus.c:4:58: error: 'more' is added to 'y': it has the same indices, and may be absent (?more[...])
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[i..] = twice(x[i..], ?more[]) plus(y: more) kernel(twice_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                          ^
