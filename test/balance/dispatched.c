/* A small causal model over batches of sequences of unequal lengths, which ht_dispatch gives their rows. Its activation sleeps NAP nanoseconds an element forward, and twice as many backward (sleeping.h).
 *
 *     dispatched STEPS KIND [SEED]     KIND mixed; padded: without ht_dispatch, all rows as long as the longest; wrong.WHAT: a mistake
 *
 * Prints for each step seconds, those of ht_dispatch, tokens, the loss and the strategy. The loss is a sum over tokens, over their number, so that padding has no part in it.
 */
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VOCAB = 40, EMBED = 16, HEADS = 2, LAYERS = 2, HIDDEN = 32, COUNT = 16, LONGEST = 128 };
int seq = LONGEST, batch = COUNT;
#pragma hspmd shape(seq, batch)

/* Returns how many nanoseconds an element takes in a call. */
static double nap_of(const ht_call *call)
{
    static double nanoseconds = -1;
    if (nanoseconds < 0)
        nanoseconds = getenv("NAP") ? atof(getenv("NAP")) : 0;
    return (void)call, nanoseconds;
}
#include "../run/sleeping.h"

static ht_tensor heads_of(ht_tensor x, const char *name)
{
    ht_tensor w = ht_param(ht_shape(EMBED, EMBED), ht_normal(0.2f), name);
#pragma hspmd dims(w: (heads _), _)
    ht_tensor y = ht_reshape(ht_linear(x, w, HT_NONE), ht_shape(ht_extent(x, 0), ht_extent(x, 1), HEADS, EMBED / HEADS));
#pragma hspmd dims(y: batch, seq, heads)
    return y;
}

static ht_tensor block(ht_tensor x)
{
    ht_tensor up = ht_param(ht_shape(HIDDEN, EMBED), ht_normal(0.2f), "up"), down = ht_param(ht_shape(EMBED, HIDDEN), ht_normal(0.2f), "down");
#pragma hspmd dims(up: hidden, _)
#pragma hspmd dims(down: _, hidden)
    ht_tensor seen = ht_attention(heads_of(x, "q"), heads_of(x, "k"), heads_of(x, "v"), HT_NONE, true);
    ht_tensor y = ht_add(x, ht_reshape(seen, ht_shape(ht_extent(x, 0), ht_extent(x, 1), EMBED)));
    ht_tensor h = slow(ht_linear(y, up, HT_NONE));
#pragma hspmd dims(h: batch, seq, hidden)
    return ht_add(y, ht_linear(h, down, HT_NONE));
}

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq)), targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
    ht_tensor share = ht_input("share", HT_F32, ht_shape(batch, seq));
#pragma hspmd dims(tokens, targets, share: batch, seq)
#pragma hspmd padding(targets: -100)
    ht_tensor table = ht_param(ht_shape(VOCAB, EMBED), ht_normal(0.5f), "table"), x = ht_embedding(table, tokens);
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x);
    }
    return ht_sum(ht_mul(ht_cross_entropy(ht_linear(x, table, HT_NONE), targets), share));
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Lengths of a batch: mostly short, some of middling length, 0 to 4 long ones; every 25th batch is long. */
static void lengths_of(int step, uint64_t seed, int64_t *lengths)
{
    uint64_t state = seed * 7919 + (uint64_t)step * 104729 + 1;
    int longs = step % 25 == 9 ? COUNT : (int)(draw(&state) % (step / 5 % 2 ? 5 : 3)), middling = step / 5 % 2 ? 4 : 0;
    for (int i = 0; i < COUNT; i++)
        lengths[i] = i < longs ? 65 + (int64_t)(draw(&state) % 64) : i < longs + middling ? 33 + (int64_t)(draw(&state) % 32) : 2 + (int64_t)(draw(&state) % 31);
    for (int i = COUNT - 1; i > 0; i--) {
        int k = (int)(draw(&state) % (uint64_t)(i + 1));
        int64_t swap = lengths[i];
        lengths[i] = lengths[k];
        lengths[k] = swap;
    }
}

static int32_t tokens[COUNT * LONGEST], targets[COUNT * LONGEST];
static float share[COUNT * LONGEST];

/* Puts the sequences of a step into their rows. */
static int64_t fill(const ht_dispatched *to, const int64_t *lengths, int step)
{
    int64_t total = 0;
    for (int i = 0; i < COUNT; i++)
        total += lengths[i];
    for (int64_t i = 0; i < (int64_t)batch * seq; i++) {
        tokens[i] = 0;
        targets[i] = -100;
        share[i] = 1.0f / (float)total;
    }
    for (int i = 0; i < COUNT; i++)
        for (int64_t t = 0; t < lengths[i]; t++) {
            tokens[to->row[i] * seq + t] = (int32_t)((i * 5 + t * 3 + step) % VOCAB);
            targets[to->row[i] * seq + t] = (int32_t)((i * 5 + t * 3 + step + 3) % VOCAB);
        }
    return total;
}

/* Calls that end the program. */
static void mistake(ht_program *program, const char *kind)
{
    static int other;
    int64_t lengths[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++)
        lengths[i] = 1;
    if (!strcmp(kind, "zero"))
        lengths[3] = 0;
    if (!strcmp(kind, "long"))
        lengths[5] = LONGEST + 1;
    if (!strcmp(kind, "null"))
        ht_dispatch(program, &seq, NULL, COUNT);
    if (!strcmp(kind, "variable"))
        ht_dispatch(program, &other, lengths, COUNT);
    if (!strcmp(kind, "next"))
        ht_dispatch(program, &seq, lengths, COUNT, .next_count = 3);
    ht_dispatch(program, &seq, lengths, !strcmp(kind, "many") ? COUNT + 1 : !strcmp(kind, "none") ? 0 : COUNT);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 1e-2f));
    int steps = argc > 1 ? atoi(argv[1]) : 10;
    uint64_t seed = argc > 3 ? (uint64_t)atoi(argv[3]) : 1;
    int64_t lengths[COUNT], next[COUNT], row[COUNT];
    const ht_dispatched as_they_come = {row, COUNT, LONGEST, "longest"};
    bool padded = argc > 2 && !strcmp(argv[2], "padded");
    for (int i = 0; i < COUNT; i++)
        row[i] = i;
    if (argc > 2 && !strncmp(argv[2], "wrong.", 6))
        mistake(program, argv[2] + 6);
    for (int step = 0; step < steps; step++) {
        lengths_of(step, seed, lengths);
        lengths_of(step + 1, seed, next);
        double begin = seconds();
        const ht_dispatched *to = padded ? &as_they_come : ht_dispatch(program, &seq, lengths, COUNT, .next = next);
        double planned = seconds();
        int64_t total = fill(to, lengths, step);
        int64_t size = (int64_t)batch * seq;
        float value = ht_step(program, ht_feed_n("tokens", (int32_t *)tokens, size), ht_feed_n("targets", (int32_t *)targets, size), ht_feed_n("share", (float *)share, size));
        printf("step %d seconds %.5f planned %.6f tokens %lld loss %.9g under %s\n", step, seconds() - begin, planned - begin, (long long)total, value, to->strategy ? to->strategy : "none");
        fflush(stdout);
    }
    return 0;
}
