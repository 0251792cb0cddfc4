// RUN: %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy dp2
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(x: batch, width)
#pragma hspmd shard(x: {0:tp})
    return ht_mean(ht_linear(x, w, HT_NONE));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// CHECK: {{.*}}shard-unknown-axis.c:14:27: warning: no strategy has a mesh axis "tp"; it counts as 1
// CHECK-NEXT: {{^}}   14 | #pragma hspmd shard(x: {0:tp})
// CHECK-NEXT: {{^}}      |                           ^
