/* Several programs of one session: one model under two optimizers, with and without clipping, and in two types; a parameter that is frozen, or does not decay, in one
 * program alone. As plain C and compiled, whole and cut, they are the same.

RUN: %cc %s -o %t.plain %flags && %t.plain > %t.txt
RUN: %hetucc -O1 --strategy=one %s -o %t.one && %t.one | diff %t.txt -
RUN: %hetucc -O1 --strategy=two %s -o %t.two && env HETU_CHECK=1 %mpirun 2 %t.two | diff %t.txt -
RUN: FileCheck %s < %t.txt
CHECK: trunk moved 0, head moved 1
CHECK: trunk moved 1, head moved 0
*/
#include <hetu/hetu.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#pragma hspmd strategy one
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy two
#pragma hspmd   split wide:tp
#pragma hspmd   stage devices(0-1) mesh(tp:2)
#pragma hspmd end strategy

enum { ROWS = 4, WIDTH = 6, WIDE = 10 };

static ht_tensor forward(bool trunk_frozen, bool head_frozen)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDTH));
    ht_tensor trunk = ht_param(ht_shape(WIDE, WIDTH), ht_normal(0.5f), "trunk", .frozen = trunk_frozen, .no_decay = head_frozen);
    ht_tensor head = ht_param(ht_shape(WIDTH, WIDE), ht_normal(0.5f), "head", .frozen = head_frozen);
#pragma hspmd dims(trunk: wide, _)
#pragma hspmd dims(head: _, wide)
    ht_tensor y = ht_sub(ht_linear(ht_gelu(ht_linear(x, trunk, HT_NONE)), head, HT_NONE), x);
    return ht_mean(ht_mul(y, y));
}

static ht_tensor head_loss(void)
{
    return forward(true, false);
}

static ht_tensor trunk_loss(void)
{
    return forward(false, true);
}

static ht_tensor both_loss(void)
{
    return forward(false, false);
}

static float x[ROWS * WIDTH], trunk[2][WIDE * WIDTH], head[2][WIDTH * WIDE];

static void step(ht_session *session, const char *name, ht_program *program)
{
    float loss = 0;
    ht_get_param(session, "trunk", trunk[0], WIDE * WIDTH);
    ht_get_param(session, "head", head[0], WIDTH * WIDE);
    for (int i = 0; i < 3; i++)
        loss = ht_step(program, ht_feed("x", x));
    ht_get_param(session, "trunk", trunk[1], WIDE * WIDTH);
    ht_get_param(session, "head", head[1], WIDTH * WIDE);
    printf("%s %.2f: trunk moved %d, head moved %d\n", name, loss, memcmp(trunk[0], trunk[1], sizeof *trunk) != 0, memcmp(head[0], head[1], sizeof *head) != 0);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    for (int i = 0; i < ROWS * WIDTH; i++)
        x[i] = sinf((float)i);
    ht_program *programs[] = {
        ht_train(session, head_loss, ht_adamw(.lr = 0.05f)),
        ht_train(session, trunk_loss, ht_sgd(.lr = 0.05f, .decay = 0.1f)),
        ht_train(session, both_loss, ht_sgd(.lr = 0.05f)),
        ht_train(session, both_loss, ht_adamw(.lr = 0.01f, .decay = 0.3f)),
        ht_train(session, both_loss, ht_adamw(.lr = 0.01f, .clip = 0.1f)),
        ht_train(session, both_loss, ht_sgd(.lr = 0.02f), .dtype = HT_BF16),
        ht_train(session, both_loss, ht_sgd(.lr = 0.01f, .momentum = 0.9f)),
    };
    static const char *const names[] = {"head", "trunk", "sgd", "adamw", "clipped", "bf16", "momentum"};
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 7; i++)
            step(session, names[i], programs[i]);
}
