/* A model on four ranks, whose main does what its first argument says, for as many steps as the second says. */
#include <hetu/hetu.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HIDDEN
#define HIDDEN 24
#endif

#pragma hspmd strategy dp4
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy
#pragma hspmd strategy dp2tp2
#pragma hspmd   split batch:dp hidden:tp
#pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy
#pragma hspmd strategy dp2
#pragma hspmd   split batch:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

/* Whether this is the rank that a variable names. */
static int is_named(const char *variable)
{
    const char *named = getenv(variable), *mpi = getenv("OMPI_COMM_WORLD_RANK"), *rank = mpi ? mpi : getenv("HETU_RANK");
    return named && rank && !strcmp(named, rank);
}

static void stop_at_exit(void)
{
    if (is_named("TEST_STOP"))
        raise(SIGSTOP);
}

/* Copies; on the rank that TEST_ODD names it changes its operand, which a kernel must not. */
void copy_kernel(const ht_call *call);
void copy_kernel(const ht_call *call)
{
    float *x = (float *)call->operand[0].data;
    if (is_named("TEST_ODD"))
        x[5] += 1;
    memcpy(call->result[0].data, x, sizeof *x * (size_t)ht_view_count(&call->operand[0], 0, 2));
}

#pragma hspmd op y[r, c] = copied(x[r, c]) replicate(r, c) kernel(copy_kernel) grad(copied_gradient)
ht_tensor copied(ht_tensor x);
static inline void copied_gradient(ht_grad *g) { g->dx[0] = g->dy[0]; }
ht_tensor copied(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = copy_kernel, .gradient = copied_gradient, .result_count = 1, .operand_count = 1,
                               .result = {{HT_F32, ht_dims_of(x)}}, .operand = &x}, &y);
    return y;
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(8, 16));
    ht_tensor up = ht_param(ht_shape(HIDDEN, 16), ht_normal(0.05f), "up"), down = ht_param(ht_shape(16, HIDDEN), ht_normal(0.05f), "down");
#pragma hspmd dims(x: batch, _)
#pragma hspmd dims(up: hidden, _)
    ht_tensor error = ht_sub(ht_linear(ht_gelu(ht_linear(x, up, HT_NONE)), copied(down), HT_NONE), x);
    return ht_mean(ht_mul(error, error));
}

int main(int argc, char **argv)
{
    static float rows[8 * 16];
    const char *mode = argc > 1 ? argv[1] : "";
    int steps = argc > 2 ? atoi(argv[2]) : 5;
    atexit(stop_at_exit);
    if (!strcmp(mode, "early"))
        usleep(400000);
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    for (int i = 0; i < 8 * 16; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < steps; step++) {
        if (!strcmp(mode, "busy"))
            sleep(3);
        if (!strcmp(mode, "fork") && !fork())
            exit(7);
        ht_step(program, ht_feed("x", rows));
    }
    puts("done");
    return 0;
}
