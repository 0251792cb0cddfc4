/* A model with an operator of its own, in a folder beside what it includes. */
#include "../lib/sizes.h"
#include <factor.h>

#include <hetu/hetu.h>

void triple_kernel(const ht_call *call)
{
    for (int64_t i = 0; i < ht_view_count(&call->result[0], 0, call->result[0].rank); i++)
        ((float *)call->result[0].data)[i] = FACTOR * ((const float *)call->operand[0].data)[i];
}

static inline void triple_gradient(ht_grad *g);

#pragma hspmd op y[i..] = triple(x[i..]) linear(x) kernel(triple_kernel) kernel(cuda: triple_cuda) grad(triple_gradient)
ht_tensor triple(ht_tensor x);

static inline void triple_gradient(ht_grad *g)
{
    g->dx[0] = triple(g->dy[0]);
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, 8));
    ht_tensor w = ht_param(ht_shape(8, 8), ht_normal(0.1f), "w");
    return ht_mean(triple(ht_linear(x, w, HT_NONE)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    float x[ROWS * 8] = {0};
    return ht_step(program, ht_feed("x", x)) == helper_zero() ? 0 : 1;
}
