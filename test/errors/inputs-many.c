// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#include <stdio.h>

static ht_tensor loss(void)
{
    ht_tensor sum = ht_param(ht_scalar_shape(), ht_zeros(), "sum");
    for (int i = 0; i < 257; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        sum = ht_add(sum, ht_input(name, HT_F32, ht_scalar_shape()));
    }
    return sum;
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}inputs-many.c:12:27: error: a model has at most 256 inputs; put several of one type into one, which ht_slice takes apart
// CHECK-NEXT: {{^}}   12 |         sum = ht_add(sum, ht_input(name, HT_F32, ht_scalar_shape()));
// CHECK-NEXT: {{^}}      |                           ^
