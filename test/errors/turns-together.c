// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy ring
#pragma hspmd   turns seq:cp
#pragma hspmd   stage devices(0-1) mesh(cp:2)
#pragma hspmd end strategy

#pragma hspmd op y[b.., s] = all(q[b.., s], k[b.., t]) replicate(t) kernel(all_kernel) grad(none)
ht_tensor all(ht_tensor q, ht_tensor k);
void all_kernel(const ht_call *call);

static ht_tensor loss(void)
{
    ht_tensor q = ht_input("q", HT_F32, ht_shape(4, 6)), k = ht_input("k", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 4), ht_normal(0.1f), "w");
#pragma hspmd dims(q, k: batch, seq)
    return ht_mean(ht_matmul(w, all(q, k)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}turns-together.c:5:27: error: no pieces of the dimension "seq" move on in turns along the axis "cp"
// CHECK-NEXT: {{^}}    5 | #pragma hspmd   turns seq:cp
// CHECK-NEXT: {{^}}      |                           ^
// CHECK: {{.*}}turns-together.c:18:{{[0-9]+}}: note: all needs them together
