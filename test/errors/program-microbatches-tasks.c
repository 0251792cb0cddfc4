// RUN: not %hetucc -DSIZE=6 %s -o %t 2>&1 | FileCheck %s --strict-whitespace
// RUN: not %hetucc -DSIZE=4 %s -o %t 2>&1 | FileCheck %s --strict-whitespace
// RUN: %hetucc -DSIZE=6 -DONE_BATCH %s --emit=ir | FileCheck %s --check-prefix=ONE
#pragma hspmd strategy several
#pragma hspmd   split batch:dp
#pragma hspmd   pipeline microbatches(2)
#pragma hspmd     stage devices(0, 1) mesh(dp:2)
#pragma hspmd end strategy
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 3));
    ht_tensor z = ht_input("z", HT_F32, ht_shape(SIZE, 3)), scale = ht_input("scale", HT_F32, ht_shape(3));
    ht_tensor w = ht_param(ht_shape(5, 3), ht_normal(0.1f), "w");
    ht_tensor y = ht_linear(ht_mul(x, scale), w, HT_NONE), other = ht_linear(z, w, HT_NONE);
#pragma hspmd dims(x: batch, _)
#ifdef ONE_BATCH
    return ht_mean(ht_einsum("be,ne->bn", ht_list(y, other))); // rows of z meet all rows of the batch: none is a task of its own
#else
    return ht_add(ht_mean(ht_mul(y, y)), ht_mean(ht_mul(other, other)));
#endif
}

int main(int argc, char **argv)
{
    float x[12] = {0}, z[3 * SIZE] = {0}, scale[3] = {0};
    ht_program *program = ht_train(ht_open(&argc, &argv), loss, ht_sgd());
    return ht_step(program, ht_feed("x", x), ht_feed("z", z), ht_feed("scale", scale)) > 0;
}

// CHECK: {{.*}}program-microbatches-tasks.c:14:19: error: the input "z" has a batch of its own, but micro-batches cut that of "x" alone: every device would compute all rows here
// CHECK-NEXT: {{^}}   14 |     ht_tensor z = ht_input("z", HT_F32, ht_shape(SIZE, 3)), scale = ht_input("scale", HT_F32, ht_shape(3));
// CHECK-NEXT: {{^}}      |                   ^
// CHECK-NEXT: {{.*}}program-microbatches-tasks.c:13:19: note: the batch that micro-batches cut is that of this input
// CHECK: {{.*}}program-microbatches-tasks.c:6:17: note: use one pipeline with microbatches(1), or give the task of "z" a program of its own (ht_train)
// ONE: part
