// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[b.., s] = all(q[b.., s], k[b.., t]) merge(t: join) kernel(all_kernel) grad(none)
ht_tensor all(ht_tensor q, ht_tensor k);
#pragma hspmd op z[i..] = x[i..] * 2
ht_tensor join(ht_tensor x);
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

// CHECK: {{.*}}op-merge-signature.c:4:65: error: join does not join results of all: it would take 2 tensors and nothing else, all results of one piece and then of the other, and give 1
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[b.., s] = all(q[b.., s], k[b.., t]) merge(t: join) kernel(all_kernel) grad(none)
// CHECK-NEXT: {{^}}      |                                                                 ^
// CHECK: {{.*}}op-merge-signature.c:6:15: note: its rule is here
