// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[b.., s] = all(q[b.., s], k[b.., t]) reduction(+: t) merge(t: join) kernel(all_kernel) grad(none)
ht_tensor all(ht_tensor q, ht_tensor k);
void all_kernel(const ht_call *call);

static ht_tensor loss(void)
{
    ht_tensor q = ht_input("q", HT_F32, ht_shape(4, 6)), k = ht_input("k", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 4), ht_normal(0.1f), "w");
    return ht_mean(ht_matmul(w, all(q, k)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-merge-twice.c:4:81: error: the factor 't' is reduced: the clause merge would join what is joined already or never cut
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[b.., s] = all(q[b.., s], k[b.., t]) reduction(+: t) merge(t: join) kernel(all_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                                                 ^
