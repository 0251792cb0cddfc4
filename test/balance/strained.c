/* Layers whose activation is an operator of a user's own that sleeps, longer on some ranks in some steps, so that cores do not compete.
 *
 *     NAP=NANOSECONDS                  an element of the activation forward, and twice as much backward; 0
 *     STRAIN="RANK:FACTOR:FROM-TO ..." how many times as long a rank's naps are in the steps from FROM to before TO
 *     strained STEPS [ONCE]            with ONCE rows are fed in the first step alone
 *
 * Prints each step's seconds and loss.
 */
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef LAYERS
#define LAYERS 8
#endif
#ifndef ROWS
#define ROWS 64
#endif
#ifndef WIDTH
#define WIDTH 12
#define HIDDEN 16
#endif
int batch = ROWS;
#pragma hspmd shape(batch)

static int own_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("HETU_RANK");
    return rank ? atoi(rank) : 0;
}

static double strain_in(int64_t step)
{
    int rank, from, to, length;
    double factor, own = 1;
    const char *at = getenv("STRAIN");
    for (; at && sscanf(at, "%d:%lf:%d-%d%n", &rank, &factor, &from, &to, &length) == 4; at += length)
        if (rank == own_rank() && step >= from && step < to)
            own = factor;
    return own;
}

/* Returns how many nanoseconds an element takes in a call. */
static double nap_of(const ht_call *call)
{
    static double nanoseconds = -1;
    if (nanoseconds < 0)
        nanoseconds = getenv("NAP") ? atof(getenv("NAP")) : 0;
    return nanoseconds * strain_in(call->step);
}
#include "../run/sleeping.h"

static ht_tensor block(ht_tensor x)
{
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.2f), "up"), down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.2f), "down");
#pragma hspmd dims(up: hidden, _)
#pragma hspmd dims(down: _, hidden)
    ht_tensor h = slow(ht_linear(x, up, HT_NONE));
#pragma hspmd dims(h: batch, hidden)
    return ht_add(x, ht_linear(h, down, HT_NONE));
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, WIDTH)), scale = ht_input("scale", HT_F32, ht_shape(batch, 1)), y = x;
#pragma hspmd dims(x, y: batch, _)
#pragma hspmd dims(scale: batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        y = block(y);
    }
    ht_tensor error = ht_mul(ht_sub(y, ht_mul(x, x)), scale);
#ifdef WHOLE // a sum over the whole batch, of what layers make
    error = ht_sub(error, ht_mean(error, .dim = ht_shape(0), .keepdim = true));
#endif
    return ht_output(ht_mean(ht_mul(error, error)), "error");
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    static float rows[ROWS * WIDTH], scale[ROWS];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f));
    int steps = argc > 1 ? atoi(argv[1]) : 10, fed = argc > 2 ? 1 : steps;
#ifndef UNCALLED
    ht_balance(program);
#endif
    for (int step = 0; step < steps; step++) {
        float value, again;
        for (int i = 0; i < ROWS * WIDTH; i++)
            rows[i] = (float)((i * 7 + (step < fed ? step : 0) * 3) % 13 - 6) / 6;
        for (int i = 0; i < ROWS; i++)
            scale[i] = 1 + (float)(i % 3);
        double begin = seconds();
        value = step < fed ? ht_step(program, ht_feed("x", rows), ht_feed("scale", scale)) : ht_step(program);
        double took = seconds() - begin;
        ht_fetch(program, "error", &again);
        printf("step %d seconds %.4f loss %.9g%s\n", step, took, value, value == again ? "" : " and other outputs");
        fflush(stdout);
    }
    return 0;
}
