// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#include <stdio.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    FILE *file = fopen("x", "r");
    x = ht_scale(x, file ? 1 : 2);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}evaluate-input-output.c:10:18: error: fopen cannot be called in a model, which is evaluated at compile time
// CHECK-NEXT: {{^}}   10 |     FILE *file = fopen("x", "r");
// CHECK-NEXT: {{^}}      |                  ^
// CHECK: note: input and output are for main: print there, and see with --strategies or --emit=ir what the model has
