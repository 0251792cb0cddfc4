/* Measures how long a program of 12 layers pauses when its strategy changes.
 *
 *     switching between A B N      the shortest of N switches each way, both strategies compiled in
 *     switching wait FILE          ht_prepare of a new strategy, then a switch once it is ready
 *     switching beside FILE        the same, but trains for READY seconds before the switch
 *     switching save FOLDER        two steps and a checkpoint; prints the time of day
 *     switching resume FOLDER      resumes, makes a step, and prints the time of day
 */
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef EMBED
#define EMBED 256
#endif
enum { LAYERS = 12, HEADS = 8, BATCH = 8, SEQ = 16, READY = 8 }; // READY: seconds

#pragma hspmd strategy tp8
#pragma hspmd split heads : tp ffn : tp
#pragma hspmd stage devices(0 - 7) mesh(tp : 8)
#pragma hspmd end strategy
#pragma hspmd strategy dp8
#pragma hspmd split batch : dp
#pragma hspmd zero 1
#pragma hspmd stage devices(0 - 7) mesh(dp : 8)
#pragma hspmd end strategy
#pragma hspmd strategy pipes
#pragma hspmd split heads : tp ffn : tp
#pragma hspmd pipeline microbatches(3) rows(2)
#pragma hspmd stage devices(0 - 1) mesh(tp : 2) layers(0 - 7)
#pragma hspmd stage devices(2) layers(8 - 11)
#pragma hspmd pipeline microbatches(2) rows(1)
#pragma hspmd stage devices(3 - 5) mesh(tp : 3) layers(0 - 5)
#pragma hspmd stage devices(6 - 7) mesh(tp : 2) layers(6 - 11)
#pragma hspmd end strategy

static ht_tensor block(ht_tensor x) {
    ht_tensor gain = ht_param(ht_shape(EMBED), ht_ones(), "gain", .no_decay = true),
              none = ht_param(ht_shape(EMBED), ht_zeros(), "none", .no_decay = true);
    ht_tensor n = ht_layer_norm(x, gain, none, 1e-5f), h[3];
    const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; i++) {
        ht_tensor w = ht_param(ht_shape(EMBED, EMBED), ht_normal(0.02f), names[i]);
#pragma hspmd dims(w : (heads _), _)
        h[i] = ht_reshape(ht_linear(n, w, HT_NONE), ht_shape(BATCH, SEQ, HEADS, EMBED / HEADS));
    }
    ht_tensor o = ht_param(ht_shape(EMBED, EMBED), ht_normal(0.02f), "o");
    ht_tensor up = ht_param(ht_shape(4 * EMBED, EMBED), ht_normal(0.02f), "up"),
              down = ht_param(ht_shape(EMBED, 4 * EMBED), ht_normal(0.02f), "down");
#pragma hspmd dims(o : _, (heads _))
#pragma hspmd dims(up : ffn, _)
#pragma hspmd dims(down : _, ffn)
    x = ht_add(x, ht_linear(ht_reshape(ht_attention(h[0], h[1], h[2], HT_NONE, true),
                                       ht_shape(BATCH, SEQ, EMBED)),
                            o, HT_NONE));
    return ht_add(x, ht_linear(ht_gelu(ht_linear(ht_layer_norm(x, gain, none, 1e-5f), up, HT_NONE)),
                               down, HT_NONE));
}

static ht_tensor loss(void) {
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, SEQ, EMBED));
#pragma hspmd dims(x : batch, seq, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x);
    }
    return ht_mean(ht_mul(x, x));
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static float rows[BATCH * SEQ * EMBED];

static void step(ht_program *program) { ht_step(program, ht_feed("x", rows)); }

/* Makes a step, switches, and makes a step; returns the seconds of the switch alone. */
static double change(ht_program *program, const char *strategy) {
    step(program);
    double begin = now();
    if (!ht_switch(program, strategy)) exit(1);
    double seconds = now() - begin;
    step(program);
    return seconds;
}

static void go_between(ht_program *program, const char *a, const char *b, int count) {
    double there = INFINITY, back = INFINITY;
    change(program, a);
    for (int i = 0; i < count; i++) {
        there = fmin(there, change(program, b));
        back = fmin(back, change(program, a));
    }
    printf("there %.4f back %.4f\n", there, back);
}

/* Prepares a new strategy and switches to it. `beside`: trains for READY seconds in between. */
static void go_to_new(ht_program *program, const char *file, bool beside) {
    double begin = now(), longest = 0;
    ht_prepare(program, file);
    printf("call %.4f\n", now() - begin);
    while (beside && now() - begin < READY) {
        double last = now();
        step(program);
        longest = fmax(longest, now() - last);
    }
    double change_begins = now();
    if (!ht_switch(program, file)) exit(1);
    printf("switch %.4f longest %.4f\n", now() - change_begins, longest);
    step(program);
}

int main(int argc, char **argv) {
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-4f));
    for (int i = 0; i < BATCH * SEQ * EMBED; i++) rows[i] = (float)(i % 13 - 6) / 6;
    if (argc == 5 && !strcmp(argv[1], "between")) {
        go_between(program, argv[2], argv[3], atoi(argv[4]));
    } else if (argc == 3 && !strcmp(argv[1], "save")) {
        step(program);
        step(program);
        printf("begun %.4f\n", now());
        ht_save(session, argv[2]);
    } else if (argc == 3 && !strcmp(argv[1], "resume")) {
        if (ht_resume(session, argv[2]) != 2) return 1;
        step(program);
        printf("gone on %.4f\n", now());
    } else if (argc == 3) {
        step(program);
        go_to_new(program, argv[2], !strcmp(argv[1], "beside"));
    }
    return 0;
}
