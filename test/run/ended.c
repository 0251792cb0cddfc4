/* A small model that a signal tells to end, for ended.py.
 *
 *     ended MODE FOLDER STEPS EVERY NAP LOG [STRATEGY...]
 *
 * It goes on from FOLDER until STEPS steps are made. LOG has a line "STEP LOSS ROWS" a step, ROWS of all steps so far, and what was made
 * after the checkpoint that it goes on from is cut off. Every step takes NAP milliseconds more, and behind every second one it goes to the
 * next STRATEGY. Letters of MODE:
 *
 *     s  saves every EVERY steps            n  with the number of rows
 *     a  asks ht_told_to_end                c  and calls it in front of the first step, too
 *     b, l  has a handler of its own before ht_open, or later, and ends by what that says; u: it is for SIGUSR1
 *     2  a second model trains in each turn, behind the first
 *     w  waits in front of ht_save, for half a second
 *
 * With -DARRIVING the strategy that TEST_PREPARE names arrives.
 */
#include "log.h"

#include <hetu/hetu.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { I = 37, H = 53, O = 11, BATCH = 24 };

static ht_tensor net(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, I));
    ht_tensor up = ht_param(ht_shape(H, I), ht_normal(0.1), "up"), bias = ht_param(ht_shape(H), ht_zeros(), "bias");
    ht_tensor down = ht_param(ht_shape(O, H), ht_normal(0.1), "down");
#pragma hspmd dims(up, bias : hidden)
#pragma hspmd dims(x : batch)
    ht_tensor y = ht_linear(ht_dropout(ht_gelu(ht_linear(x, up, bias)), 0.1f), down, HT_NONE);
    return ht_mean(ht_mul(ht_sub(y, ht_scalar(1)), y));
}

static ht_tensor second(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, I));
    ht_tensor w = ht_param(ht_shape(O, I), ht_normal(0.1), "w");
#pragma hspmd dims(x : batch)
    ht_tensor y = ht_linear(x, w, HT_NONE);
    return ht_mean(ht_mul(y, y));
}

static volatile sig_atomic_t told;

static void on_signal(int number)
{
    static const char said[] = "handler of main\n";
    (void)number;
    told++;
    if (write(STDOUT_FILENO, said, sizeof said - 1) < 0)
        told++;
}

static void handle(const char *mode) { signal(strchr(mode, 'u') ? SIGUSR1 : SIGTERM, on_signal); }

static void save(ht_session *session, const char *mode, const char *folder, double rows)
{
    if (strchr(mode, 'w'))
        nanosleep(&(struct timespec){.tv_nsec = 500000000L}, NULL);
    if (strchr(mode, 'n'))
        ht_save(session, folder, ht_note("rows", rows));
    else if (strchr(mode, 'k'))
        ht_save(session, folder, ht_note("width", I)); // the same each time
    else
        ht_save(session, folder);
}

int main(int argc, char **argv)
{
    const char *mode = argv[1], *folder = argv[2];
    if (strchr(mode, 'b'))
        handle(mode);
    ht_session *session = ht_open(&argc, &argv);
    if (strchr(mode, 'l'))
        handle(mode);
    ht_program *program = ht_train(session, net, ht_adamw(.lr = 0.01f));
#ifdef ARRIVING
    ht_prepare(program, getenv("TEST_PREPARE"));
#endif
    ht_program *other = strchr(mode, '2') ? ht_train(session, second, ht_sgd(.lr = 0.01f)) : NULL;
    int64_t step = ht_resume(session, folder), steps = atoi(argv[3]);
    int every = atoi(argv[4]), nap = atoi(argv[5]), strategies = argc > 7 ? argc - 7 : 0;
    double rows = strchr(mode, 'n') ? ht_noted_value(session, "rows", 0) : (double)step * BATCH;
    FILE *log = open_log(argv[6], step);
    static float x[BATCH * I];
    say("goes on behind step", step);
    bool ends = strchr(mode, 'c') && ht_told_to_end(session);
    for (; step < steps && !ends; step++) {
        if (strategies && step % 2) {
            say("switching", step);
            ht_switch(program, argv[7 + step / 2 % strategies]);
        }
        for (int i = 0; i < BATCH * I; i++)
            x[i] = (float)((int)(i * 7 + step * 5) % 17 - 8) / 8;
        float loss = ht_step(program, ht_feed("x", x));
        if (other) {
            nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
            loss += ht_step(other, ht_feed("x", x));
        }
        fprintf(log, "%lld %.9g %.17g\n", (long long)step, loss, rows += BATCH);
        fflush(log);
        ends = (strchr(mode, 'a') && ht_told_to_end(session)) || told;
        if (strchr(mode, 's') && ((step + 1) % every == 0 || ends)) {
            say("saving", step);
            save(session, mode, folder, rows);
            say("saved", step);
        }
        say("step", step + 1);
        nanosleep(&(struct timespec){.tv_nsec = nap * 1000000L}, NULL);
    }
    say(ends ? "ended by a signal behind" : "done behind", step);
    if (fclose(log))
        return 1;
    return ends ? 9 : 0;
}
