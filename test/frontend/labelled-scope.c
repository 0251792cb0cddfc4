// A scope that is declared behind a label ends with its block, as any other.
// RUN: %hetucc --emit=ir --stop-after=frontend %s | FileCheck %s
#include <hetu/hetu.h>

// CHECK: param %{{.*}} "part.w"
// CHECK: param %{{.*}} "v"
static ht_tensor model(void)
{
    ht_tensor w, v;
    int argument = 3;
    switch (argument) {
    default:
        ht_scope("part");
        w = ht_param(ht_shape(2), ht_ones(), "w");
    }
    v = ht_param(ht_shape(2), ht_ones(), "v");
    return ht_mean(ht_add(w, v));
}

int main(int argc, char **argv)
{
    ht_infer(ht_open(&argc, &argv), model);
}
