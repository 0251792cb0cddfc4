// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_embedding(w, x));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}assertion-embedding.c:8:20: error: the assertion "ht_is_integer(id) && "the ids of ht_embedding are integers"" does not hold
// CHECK-NEXT: {{^}}    8 |     return ht_mean(ht_embedding(w, x));
// CHECK-NEXT: {{^}}      |                    ^
// CHECK-NEXT: {{.*}}assertion-embedding.c:8:20: note: in the call of ht_embedding
// CHECK-NEXT: {{^}}    8 |     return ht_mean(ht_embedding(w, x));
// CHECK-NEXT: {{^}}      |                    ^
