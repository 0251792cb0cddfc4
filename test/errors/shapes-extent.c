// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
    int n = (int)ht_extent(x, 2);
    w = ht_scale(w, n);
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shapes-extent.c:8:18: error: ht_extent: a tensor of shape (4, 6) has no dimension 2
// CHECK-NEXT: {{^}}    8 |     int n = (int)ht_extent(x, 2);
// CHECK-NEXT: {{^}}      |                  ^
