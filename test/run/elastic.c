/* A small model that trains on what slots there are, for elastic.py.
 *
 *     elastic FOLDER STEPS SAVE COPY LOG [NAP [STRATEGY...]]
 *
 * It goes on from FOLDER until STEPS steps are made, saves every SAVE steps, and copies to shared memory every COPY steps. LOG has a line
 * "STEP LOSS ROWS" a step, ROWS of all steps so far; what was made after the checkpoint that it goes on from is cut off. Every step takes
 * NAP milliseconds more, and behind every second one it goes to the next STRATEGY. Standard output has a line "done STEP RANKS" as soon as
 * a step is.
 */
#include "log.h"

#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { I = 37, H = 53, O = 11 };
int batch = 24;
#pragma hspmd shape(batch)

static ht_tensor net(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, I));
    ht_tensor up = ht_param(ht_shape(H, I), ht_normal(0.1), "up"), bias = ht_param(ht_shape(H), ht_zeros(), "bias");
    ht_tensor down = ht_param(ht_shape(O, H), ht_normal(0.1), "down");
#pragma hspmd dims(up, bias : hidden)
#pragma hspmd dims(x : batch)
    ht_tensor y = ht_linear(ht_dropout(ht_gelu(ht_linear(x, up, bias)), 0.1f), down, HT_NONE);
    return ht_mean(ht_mul(ht_sub(y, ht_scalar(1)), y));
}

static void draw_rows(float *x, int64_t step)
{
    for (int i = 0; i < batch * I; i++)
        x[i] = (float)((i * 7 + step * 5) % 17 - 8) / 8;
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, net, ht_adamw(.lr = 0.01f));
    int64_t step = ht_resume(session, argv[1]), steps = atoi(argv[2]);
    int save = atoi(argv[3]), copy = atoi(argv[4]), nap = argc > 6 ? atoi(argv[6]) : 0, strategies = argc > 7 ? argc - 7 : 0;
    double rows = ht_noted_value(session, "rows", 0);
    FILE *log = open_log(argv[5], step);
    float *x = calloc((size_t)batch * I, sizeof *x);
#ifdef ARRIVING
    ht_prepare(program, getenv("TEST_PREPARE"));
#endif
    printf("goes on behind step %lld\n", (long long)step);
    for (; step < steps; step++) {
        if (strategies && step % 2)
            say("switching", step);
        if (strategies && step % 2)
            ht_switch(program, argv[7 + step / 2 % strategies]);
        draw_rows(x, step);
        float loss = ht_step(program, ht_feed_n("x", x, (int64_t)batch * I));
        fprintf(log, "%lld %.9g %.17g\n", (long long)step, loss, rows += batch);
        fflush(log);
        if (save && (step + 1) % save == 0)
            say("saving", step);
        if (save && (step + 1) % save == 0)
            ht_save(session, argv[1], ht_note("rows", rows));
        if (copy && (step + 1) % copy == 0)
            ht_remember(session, argv[1], ht_note("rows", rows));
        say("step", step + 1);
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
    }
    free(x);
    return fclose(log) ? 1 : 0;
}
