// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
// RUN: %cc %s -o %t %flags && not %t 2>&1 | FileCheck %s --check-prefix=PLAIN
#include <hetu/hetu.h>

void twice_kernel(const ht_call *call)
{
    for (int i = 0; i < 24; i++)
        ((float *)call->result[0].data)[i] = ((float *)call->result[1].data)[i] = 2 * ((const float *)call->operand[0].data)[i];
}

static inline void twice_gradient(ht_grad *g)
{
    g->dx[0] = ht_scale(g->dy[0], 2);
}

typedef struct Twice {
    ht_tensor y, again;
} Twice;
#pragma hspmd op y[i..], again[i..] = twice(x[i..]) kernel(twice_kernel) grad(twice_gradient)
Twice twice(ht_tensor x)
{
    ht_tensor y[2];
    ht_result like = {HT_F32, ht_dims_of(x)};
    ht_apply(&(ht_application){.kernel = twice_kernel, .gradient = twice_gradient, .result_count = 2, .operand_count = 1, .result = {like, like}, .operand = &x}, y);
    return (Twice){y[0], y[1]};
}

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(4, 6), ht_normal(0.1f), "w");
    Twice fine = twice(w), ignored = twice(w);
    ht_tensor rest = ht_mean(ht_mul(fine.y, ht_detach(fine.again)));
    return ht_add(rest, ht_mean(ht_mul(ignored.y, ignored.again)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_step(ht_train(session, loss, ht_sgd(.lr = 0.1f)));
    return 0;
}

// CHECK: {{.*}}gradient-ignores.c:31:38: error: the loss depends on the result 'again' of twice, but the gradient ignores it
// CHECK-NEXT: {{^}}   31 |     Twice fine = twice(w), ignored = twice(w);
// CHECK-NEXT: {{^}}      |                                      ^
// CHECK-NEXT: {{.*}}gradient-ignores.c:19:15: note: twice_gradient does not use dy[1]: use it there, or give the result to ht_detach where no gradient shall flow
// PLAIN: the loss depends on result 1, of shape (4, 6), of an operator of 2 results and 1 operands, but the gradient ignores it: its gradient function does not use dy[1]; use it there, or give the result to ht_detach where no gradient shall flow
