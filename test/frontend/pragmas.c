// Pragmas: continuation lines, macros, _Pragma, expressions as operands, the next statement; not under #if 0.
// RUN: %hetucc --emit=ir --stop-after=frontend --strategy=two -I %S/Inputs %s | FileCheck %s

#include <hetu/hetu.h>

#include "named.h"

enum { HEADS = 3, WIDTH = 4 };
#define NAMED(x, ...) PRAGMA(hspmd dims(x: __VA_ARGS__))
#define PRAGMA(text) _Pragma(#text)
#define LEADING batch, seq
#define LAYER(n) ((n) + 10)
#define LAST 3

int seq = 128, batch = 16;
#pragma hspmd shape(seq, batch)

#if 0
#pragma hspmd nonsense(here)
#pragma hspmd dims(x: y)
#endif

// CHECK: strategy two
// CHECK-NEXT: split batch:dp
// CHECK-NEXT: pipeline
// CHECK-NEXT: stage devices(0-1) mesh(dp:2)
#pragma hspmd strategy two (seq = 32, batch = 2 * \
                            HEADS)
#pragma hspmd   split batch:dp   /* a comment */
#pragma hspmd   pipeline microbatches(1)   // another
#pragma hspmd     stage devices(0-(LAST - 2)) mesh(dp:2)
#pragma hspmd end strategy

#pragma hspmd strategy one
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy

struct pair {
    ht_tensor a, list[2];
};

static ht_tensor step(ht_tensor x)
{
    ht_scope("s");
#pragma hspmd dims(x: _, seq)
    return ht_relu(x);
}

// CHECK: param %{{.*}} "w" {{.*}}: f32[24, 12] dims((three heads _), embed)
// CHECK: input %{{.*}} "x" : f32[6, 32, 12] dims(batch, seq, _) shard<{0:dp}>
// CHECK: input %{{.*}} "y" {{.*}} dims(one)
// CHECK: input %{{.*}} "z" {{.*}} dims(header)
ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, seq, HEADS * WIDTH));
#pragma hspmd dims(x: \
                   LEADING)
    ht_tensor w = ht_param(ht_shape(2 * HEADS * WIDTH, HEADS * WIDTH), ht_normal(0.5), "w");
#pragma hspmd dims(w: (three heads _), embed)
    ht_tensor y = ht_input("y", HT_I32, ht_shape(5)), z = ht_input("z", HT_I32, ht_shape(5));
    NAMED(y, one)
    NAME_IN_HEADER(z);
    struct pair p = {.a = x}, *q = &p;
    q->list[1] = x;
#pragma hspmd shard(p.a, q->list[HEADS - 2]: {0:dp})
    // CHECK: = ht_linear({{.*}} layer 13 {{.*}} "all"
    ht_tensor all;
#pragma hspmd layer(LAYER(LAST))
    all = ht_linear(x, w, HT_NONE);
    for (int l = 0; l < 2; l++)
#pragma hspmd layer(tower, l)
        // CHECK: = ht_relu({{.*}} tower "tower" layer 0 scope "s"
        // CHECK: = ht_relu({{.*}} tower "tower" layer 1 scope "s"
        all = step(all);
    // CHECK: = ht_relu({{.*}} layer "head" scope "s"
#pragma hspmd layer(head)
    all = step(all);
    // CHECK: = ht_relu({{.*}} tower "tower" layer "head" scope "s"
#pragma hspmd layer(tower, head)
    all = step(all);
    // CHECK: %[[R:[0-9]+]] = reshard(%{{.*}}) {{.*}} shard<{}>
#pragma hspmd reshard(all: {})
    // CHECK: = ht_exp(%[[R]])
    ht_tensor last = ht_exp(all);
    if (batch > 1)
#pragma hspmd layer(head, 0)
        last = ht_relu(last);
    else
        last = all;
    return ht_sum(last);
}

int main(int argc, char **argv)
{
    ht_train(ht_open(&argc, &argv), model, ht_sgd(.lr = 1));
}
