/* A model whose program is compiled with many options and goes on under strategies that arrive, for arrivals.py.
 *
 *     NAP=NANOSECONDS   an element of the activation forward, and twice as much backward; 0
 *     SLOW=RANK         takes 3.5 times as long from the 6th step on: a rate with a fraction
 *     arrivals WORD...
 *
 * Words are done in order: `balance`, `prepare=STRATEGY`, `to=STRATEGY`, `steps=N`, `save=FOLDER`, `resume=FOLDER`, `run=COMMAND`.
 * Prints the loss of each step, and whether each switch was made.
 */
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WIDTH
#define WIDTH 12
#endif
#ifdef SIZES
#include "sizes.h"
#else
#define HIDDEN 16
#endif
#ifndef ELEMENTS
#define ELEMENTS HT_F32
#endif
enum { ROWS = 32, LAYERS = 2 };
int batch = ROWS;
#pragma hspmd shape(batch)
#pragma hspmd strategy named
#pragma hspmd split batch : dp
#pragma hspmd zero 1
#pragma hspmd stage devices(0 - 3) mesh(dp : 4)
#pragma hspmd end strategy

#ifndef FAST
/* Returns how many nanoseconds an element takes in a call. */
static double nap_of(const ht_call *call)
{
    const char *nap = getenv("NAP"), *slow = getenv("SLOW"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    rank = rank ? rank : getenv("HETU_RANK");
    bool late = slow && rank && !strcmp(slow, rank) && call->step >= 6;
    return nap ? atof(nap) * (late ? 3.5 : 1) : 0;
}
#include "sleeping.h"
#else // no operator of C
static inline ht_tensor slow(ht_tensor x) { return ht_relu(x); }
#endif

#ifdef APART // in a file of its own
ht_tensor loss_of(ht_tensor y, ht_tensor x);
#else
static ht_tensor loss_of(ht_tensor y, ht_tensor x)
{
    ht_tensor error = ht_sub(y, ht_mul(x, x));
    return ht_mean(ht_mul(error, error));
}
#endif

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, WIDTH)), y = x;
#pragma hspmd dims(x, y : batch, _)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        {
            ht_tensor up = ht_param(ht_shape(HIDDEN, WIDTH), ht_normal(0.2f), "up"),
                      down = ht_param(ht_shape(WIDTH, HIDDEN), ht_normal(0.2f), "down");
#pragma hspmd dims(up : hidden, _)
#pragma hspmd dims(down : _, hidden)
            y = ht_add(y, ht_linear(ht_gelu(slow(ht_cast(ht_linear(y, up, HT_NONE), HT_F32))), down, HT_NONE));
        }
    }
    return loss_of(y, x);
}

static float rows[ROWS * WIDTH];
static int made;

static void step(ht_program *program)
{
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)((i * 7 + made * 3) % 13 - 6) / 6;
    printf("loss %d %.9g\n", made, ht_step(program, ht_feed("x", rows)));
    fflush(stdout);
    made++;
}

/* What stands behind "NAME=". */
static const char *value_of(const char *word, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(word, name, length) && word[length] == '=' ? word + length + 1 : NULL;
}

static void work(ht_session *session, ht_program *program, const char *word)
{
    const char *value;
    if (!strcmp(word, "balance"))
        ht_balance(program);
    else if ((value = value_of(word, "prepare")))
        ht_prepare(program, value);
    else if ((value = value_of(word, "to")))
        printf("switch %d\n", ht_switch(program, value));
    else if ((value = value_of(word, "save")))
        ht_save(session, value);
    else if ((value = value_of(word, "resume")))
        made = (int)ht_resume(session, value);
    else if ((value = value_of(word, "run")))
        printf("status %d\n", system(value));
    else if ((value = value_of(word, "steps")))
        for (int i = 0; i < atoi(value); i++)
            step(program);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f), .dtype = ELEMENTS);
    for (int i = 1; i < argc; i++)
        work(session, program, argv[i]);
    return 0;
}
