// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd op y[n] = embed(x[i]) size(n: extent) replicate(n, i) tiles(joined: start, start) kernel(embed_kernel) grad(none)
ht_tensor embed(ht_tensor x, int64_t start, int64_t extent);
void embed_kernel(const ht_call *call);

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(3), ht_normal(0.1f), "w");
    return ht_mean(embed(w, 2, 6));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}op-tiles.c:4:15: error: "joined" in the clause tiles is no operator
// CHECK-NEXT: {{^}}    4 | #pragma hspmd op y[n] = embed(x[i]) size(n: extent) replicate(n, i) tiles(joined: start, start) kernel(embed_kernel) grad(none)
// CHECK-NEXT: {{^}}      |               ^
