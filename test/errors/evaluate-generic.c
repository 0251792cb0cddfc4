// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    x = ht_scale(x, _Generic(1, int: ht_rank(x), default: ht_rank(w)));
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}evaluate-generic.c:8:21: error: a _Generic with several associations of the type that it takes cannot be evaluated at compile time; write the model without it
// CHECK-NEXT: {{^}}    8 |     x = ht_scale(x, _Generic(1, int: ht_rank(x), default: ht_rank(w)));
// CHECK-NEXT: {{^}}      |                     ^
