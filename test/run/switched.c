/* A model that goes from one strategy to another, for switches.py.
 *
 *     switched losses STRATEGY...   a step, and then for each strategy a switch and a step; prints the losses and an output of ht_infer
 *     switched trips N A B          N times from A to B and back, and no step: what is sent is what switches send
 *     switched memory N A B         the same with steps; prints rank 0's memory and open files after 20 switches and at the end, and after each
 *                                   of the first ones the most memory that it had while it switched, before and after
 */
#include <hetu/hetu.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WIDTH
#define WIDTH 33
#endif
enum { HIDDEN = 4 * WIDTH + 3, HEADS = 3, LAYERS = 6 };
int batch = 13, seq = 7;
#pragma hspmd shape(batch, seq)

static ht_tensor block(ht_tensor x)
{
    ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.05f), "up");
    ht_tensor down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.05f), "down");
    ht_tensor gain = ht_param(ht_shape(WIDTH), ht_ones(), "gain", .no_decay = true);
    ht_tensor none = ht_param(ht_shape(WIDTH), ht_zeros(), "none", .no_decay = true);
#pragma hspmd dims(up: hidden, _)
#pragma hspmd dims(down: _, hidden)
    ht_tensor h = ht_gelu(ht_linear(ht_layer_norm(x, gain, none, 1e-5f), up, HT_NONE));
#pragma hspmd dims(h: batch, seq, hidden)
    return ht_add(x, ht_dropout(ht_linear(h, down, HT_NONE), 0.1f));
}

static ht_tensor outputs(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, seq, WIDTH)), y = x;
#pragma hspmd dims(x, y: batch, seq, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        y = block(y);
    }
    return ht_output(ht_sub(y, ht_mul(x, x)), "y");
}

static ht_tensor loss(void)
{
    ht_tensor y = outputs();
#ifdef LEARNT
    ht_tensor mean = ht_state(ht_shape(WIDTH), ht_zeros(), "mean");
    ht_assign(mean, ht_add(ht_mul(mean, ht_scalar(0.5)), ht_mean(y, .dim = ht_shape(0, 1))));
    y = ht_add(y, ht_mul(mean, ht_scalar(0.25)));
#endif
    return ht_mean(ht_mul(y, y));
}

static float rows[64 * 64 * WIDTH], values[64 * 64 * WIDTH];

/* A step under the strategy of the program, and a forward run; prints what they give. */
static void go(ht_program *program, ht_program *forward, int step)
{
    for (int i = 0; i < batch * seq * WIDTH; i++)
        rows[i] = (float)((i * 7 + step * 3) % 13 - 6) / 6;
    float value = ht_step(program, ht_feed_n("x", rows, (int64_t)batch * seq * WIDTH));
    ht_run(forward, ht_feed_n("x", rows, (int64_t)batch * seq * WIDTH));
    ht_fetch(forward, "y", values);
    printf("%.9g %.9g\n", value, values[batch * seq * WIDTH / 2]);
}

/* Goes to a strategy; "half" is one of shorter rows. */
static void change(ht_program *program, const char *strategy)
{
    seq = strcmp(strategy, "half") ? 7 : 4;
    ht_switch(program, strategy);
}

static int count_files(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static long memory(const char *what)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file))
        if (!strncmp(line, what, strlen(what)))
            kib = atol(line + strlen(what));
    fclose(file);
    return kib;
}

/* A switch; prints the most memory of rank 0 in it, and what it has before it and after the step that follows. */
static void watch(ht_program *program, ht_program *forward, const char *strategy, int step)
{
    long before = memory("VmRSS:");
    FILE *file = fopen("/proc/self/clear_refs", "w"); // 5: the peak begins anew
    fputs("5", file);
    fclose(file);
    change(program, strategy);
    long most = memory("VmHWM:");
    go(program, forward, step);
    printf("switch to %s: %ld KiB at most, %ld before, %ld after\n", strategy, most, before, memory("VmRSS:"));
}

static void trips(ht_program *program, ht_program *forward, int count, char **names, bool steps)
{
    if (steps)
        go(program, forward, 0);
    for (int i = 0; i < 2 * count; i++) {
        if (steps && i < 6) {
            watch(program, forward, names[1 - i % 2], i);
            continue;
        }
        change(program, names[1 - i % 2]);
        if (steps)
            go(program, forward, i);
        if (steps && (i == 19 || i == 2 * count - 1))
            printf("after %d: %ld KiB, %d files\n", i + 1, memory("VmRSS:"), count_files());
    }
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
#ifdef LEARNT // all that training can have learnt: a state of the model's, optimizers by groups, rules of theirs with states, averages
    ht_program *program = ht_train(session, loss, ht_averaged(ht_adamw(.lr = 1e-2f), 0.5f),
                                   .groups = ht_groups({"*up", ht_averaged(ht_muon(.lr = 1e-2f), 0.5f)},
                                                       {"*gain", ht_averaged(ht_adafactor(.lr = 1e-2f), 0.5f)}));
    ht_program *forward = ht_infer(session, outputs, .averaged = true);
#else
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f));
    ht_program *forward = ht_infer(session, outputs);
#endif
    if (argc > 4 && strcmp(argv[1], "losses")) {
        trips(program, forward, atoi(argv[2]), argv + 3, !strcmp(argv[1], "memory"));
        return 0;
    }
    go(program, forward, 0);
    for (int i = 2; i < argc; i++) {
        change(program, argv[i]);
        go(program, forward, i - 1);
    }
    return 0;
}
