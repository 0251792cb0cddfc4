/* Layers of operators of a user's own that take the time that they are told to, and use no processor: they sleep.
 *
 *     NAPS="F B W"             milliseconds of a layer forward, of the gradient of what it reads, and of its parameter's; 0
 *     FATAL="RANK PART TIMES"  the rank kills itself when it does that part, 0 to 3 (3: the update), for so many times
 *
 * Layer l takes UNIT(l) times as long. Prints losses and parameters to the bit, and the seconds of each step behind the first.
 */
#include <hetu/hetu.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LAYERS
#define LAYERS 4
#endif
#ifndef UNIT
#define UNIT(l) 1
#endif
enum { ROWS = 48, WIDTH = 9, STEPS = 4 };

typedef enum Part { FORWARD, BACKWARD, WEIGHTS, UPDATE } Part;

static int own_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("HETU_RANK");
    return rank ? atoi(rank) : 0;
}

static void die_in(Part part)
{
    static int done[UPDATE + 1];
    int rank, fatal, times;
    const char *text = getenv("FATAL");
    if (text && sscanf(text, "%d %d %d", &rank, &fatal, &times) == 3 && rank == own_rank() && (Part)fatal == part && ++done[part] == times)
        raise(SIGKILL);
}

static void nap(Part part, int64_t units)
{
    int milliseconds[UPDATE] = {0};
    const char *text = getenv("NAPS");
    die_in(part);
    if (!text || sscanf(text, "%d %d %d", &milliseconds[FORWARD], &milliseconds[BACKWARD], &milliseconds[WEIGHTS]) != 3)
        return;
    int64_t most = milliseconds[part] * units;
    nanosleep(&(struct timespec){.tv_sec = most / 1000, .tv_nsec = most % 1000 * 1000000}, NULL);
}

/* ---- y = x w, element by element ---- */

static void scale(const ht_call *call)
{
    const float *x = call->operand[0].data, *w = call->operand[1].data;
    float *y = call->result[0].data;
    int rank = call->operand[0].rank;
    int64_t rows = ht_view_count(&call->operand[0], 0, rank - 1), width = call->operand[0].extent[rank - 1];
    for (int64_t i = 0; i < rows * width; i++)
        y[i] = x[i] * w[i % width];
}

void napped_kernel(const ht_call *call)
{
    nap(FORWARD, call->attr[0].i);
    scale(call);
}

void napped_back_kernel(const ht_call *call)
{
    nap(BACKWARD, call->attr[0].i);
    scale(call);
}

void napped_weights_kernel(const ht_call *call)
{
    const float *dy = call->operand[0].data, *x = call->operand[1].data;
    float *dw = call->result[0].data;
    int rank = call->operand[0].rank;
    int64_t rows = ht_view_count(&call->operand[0], 0, rank - 1), width = call->operand[0].extent[rank - 1];
    nap(WEIGHTS, call->attr[0].i);
    memset(dw, 0, (size_t)width * sizeof *dw);
    for (int64_t i = 0; i < rows * width; i++)
        dw[i % width] += dy[i] * x[i];
}

#pragma hspmd op dx[r.., c] = napped_back(dy[r.., c], w[c])  kernel(napped_back_kernel)  grad(none)
ht_tensor napped_back(ht_tensor dy, ht_tensor w, int64_t units)
{
    ht_tensor dx;
    ht_apply(&(ht_application){.kernel = napped_back_kernel, .result_count = 1, .operand_count = 2, .attr_count = 1, .attr = (ht_attr[]){{.i = units}},
                               .result = {{HT_F32, ht_dims_of(dy)}}, .operand = (ht_tensor[]){dy, w}}, &dx);
    return dx;
}

#pragma hspmd op dw[c] = napped_weights(dy[r.., c], x[r.., c])  reduction(+: r)  linear(dy)  kernel(napped_weights_kernel)  grad(none)
ht_tensor napped_weights(ht_tensor dy, ht_tensor x, int64_t units)
{
    ht_tensor dw;
    ht_apply(&(ht_application){.kernel = napped_weights_kernel, .result_count = 1, .operand_count = 2, .attr_count = 1, .attr = (ht_attr[]){{.i = units}},
                               .result = {{HT_F32, ht_shape(ht_extent(dy, -1))}}, .operand = (ht_tensor[]){dy, x}}, &dw);
    return dw;
}

static inline void napped_gradient(ht_grad *g)
{
    g->dx[0] = napped_back(g->dy[0], g->x[1], g->attr[0].i);
    g->dx[1] = napped_weights(g->dy[0], g->x[0], g->attr[0].i);
}

#pragma hspmd op y[r.., c] = napped(x[r.., c], w[c])  kernel(napped_kernel)  grad(napped_gradient)
ht_tensor napped(ht_tensor x, ht_tensor w, int64_t units)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = napped_kernel, .gradient = napped_gradient, .result_count = 1, .operand_count = 2, .attr_count = 1,
                               .attr = (ht_attr[]){{.i = units}}, .result = {{HT_F32, ht_dims_of(x)}}, .operand = (ht_tensor[]){x, w}}, &y);
    return y;
}

/* ---- p - rate (g + m / 2), where m is the gradient before ---- */

void napped_descent_kernel(const ht_call *call)
{
    const float *p = call->operand[0].data, *g = call->operand[1].data, *m = call->operand[2].data;
    float *p1 = call->result[0].data, *m1 = call->result[1].data;
    die_in(UPDATE);
    for (int64_t i = 0, count = ht_view_count(&call->result[0], 0, call->result[0].rank); i < count; i++) {
        float slope = g[i];
        p1[i] = p[i] - call->hyper[0] * (slope + m[i] / 2);
        m1[i] = slope;
    }
}

typedef struct Descended {
    ht_tensor p1, m1;
} Descended;

#pragma hspmd op p1[i..], m1[i..] = napped_descent(p[i..], g[i..], m[i..])  inplace(p1: p, m1: m)  kernel(napped_descent_kernel)  grad(none)
Descended napped_descent(ht_tensor p, ht_tensor g, ht_tensor m, bool decay)
{
    ht_tensor result[2];
    (void)decay;
    ht_apply(&(ht_application){.kernel = napped_descent_kernel, .result_count = 2, .operand_count = 3,
                               .result = {{HT_F32, ht_dims_of(p)}, {HT_F32, ht_dims_of(p)}}, .operand = (ht_tensor[]){p, g, m}}, result);
    return (Descended){result[0], result[1]};
}

/* ---- the model ---- */

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH)), h = x;
#pragma hspmd dims(x : batch, width)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        h = napped(l ? h : ht_add(x, ht_param(ht_shape(WIDTH), ht_zeros(), "b")), ht_param(ht_shape(WIDTH), ht_uniform(1.5f), "w"), UNIT(l));
    }
    ht_tensor error = ht_sub(h, x);
    return ht_mean(ht_mul(error, error));
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_parameters(ht_session *session)
{
    for (int l = 0; l < LAYERS; l++) {
        char name[32];
        float w[WIDTH];
        snprintf(name, sizeof name, "h%d.w", l);
        ht_get_param(session, name, w, WIDTH);
        for (int i = 0; i < WIDTH; i++)
            printf("%s[%d] %a\n", name, i, w[i]);
    }
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH];
    ht_session *session = ht_open(&argc, &argv);
    ht_optimizer descent = {.update = (void (*)(void))napped_descent, .states = 1, .kernel = napped_descent_kernel, .hyper = {0.1f}};
    ht_program *program = ht_train(session, loss, descent);
    double took[STEPS];
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i * 7 % 13 - 6) / 6;
    for (int step = 0; step < STEPS; step++) {
        double begin = seconds();
        printf("loss %a\n", ht_step(program, ht_feed("x", rows)));
        took[step] = seconds() - begin;
    }
    print_parameters(session);
    for (int step = 1; step < STEPS; step++)
        printf("seconds %.6f\n", took[step]);
    return 0;
}
