// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

#pragma hspmd strategy four
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(6, 4));
#pragma hspmd dims(x: rows, _)
#pragma hspmd shard(x: {rows:dp zigzag, dup:tp zigzag})
    return ht_mean(x);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, loss);
    return 0;
}

// CHECK: {{.*}}shard-zigzag.c:13:48: error: only a split of a dimension can be zigzag
// CHECK-NEXT: {{^}}   13 | #pragma hspmd shard(x: {rows:dp zigzag, dup:tp zigzag})
// CHECK-NEXT: {{^}}      |                                                ^
