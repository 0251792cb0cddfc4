/* Two towers that a third part joins: rows of numbers and rows of text are encoded apart, and what they make is read together.
 *
 * What pipelines have to carry besides one value from stage to stage: the picture is read again by every joined layer and by the head,
 * all stages read one gain and one input of weights, the table of words is tied, and one layer has no operator that can be cut by name.
 * -DSGD trains by SGD with momentum instead of AdamW, -DDTYPE=HT_BF16 computes in bf16.
 */
#include "../../examples/common/train.h"

#include <stdlib.h>

#ifndef DTYPE
#define DTYPE HT_F32
#endif

enum { BATCH = 19, WIDTH = 21, HEADS = 3, FFN = 38, VOCAB = 43, PATCHES = 7, WORDS = 9, PIXELS = 10, DEPTH = 3, JOINED = 3 };

static ht_tensor weight(int rows, int columns, const char *name) { return ht_param(ht_shape(rows, columns), ht_normal(0.2f), name); }

/* One of key and value out of both (batch, read, 2, heads, width). */
static ht_tensor part(ht_tensor both, int index)
{
    return ht_reshape(ht_slice(both, 2, index, 1), ht_shape(BATCH, ht_extent(both, 1), HEADS, WIDTH / HEADS));
}

/* What x (batch, length, WIDTH) finds in `read` (batch, other, WIDTH). */
static ht_tensor attention(ht_tensor x, ht_tensor read)
{
    int64_t length = ht_extent(x, 1);
    ht_tensor query = weight(WIDTH, WIDTH, "query"), both = weight(2 * WIDTH, WIDTH, "both");
#pragma hspmd dims(query : (heads _))
#pragma hspmd dims(both : (_ heads _))
    ht_tensor q = ht_reshape(ht_linear(x, query, HT_NONE), ht_shape(BATCH, length, HEADS, WIDTH / HEADS));
    ht_tensor kv = ht_reshape(ht_linear(read, both, HT_NONE), ht_shape(BATCH, ht_extent(read, 1), 2, HEADS, WIDTH / HEADS));
#pragma hspmd dims(q : batch, _, heads)
    return ht_reshape(ht_attention(q, part(kv, 0), part(kv, 1), HT_NONE, false), ht_shape(BATCH, length, WIDTH));
}

/* A block of x that reads `read`; `gain` (WIDTH) and `weights` (batch, 1, 1) are those of all blocks. */
static ht_tensor block(ht_tensor x, ht_tensor read, ht_tensor gain, ht_tensor weights)
{
    ht_tensor up = weight(FFN, WIDTH, "up"), down = weight(WIDTH, FFN, "down");
#pragma hspmd dims(up : ffn, _)
#pragma hspmd dims(down : _, ffn)
    ht_tensor y = ht_add(x, ht_mul(attention(ht_mul(x, gain), read), weights));
    return ht_add(y, ht_dropout(ht_linear(ht_gelu(ht_linear(y, up, HT_NONE)), down, HT_NONE), 0.1f));
}

ht_tensor towers_loss(void)
{
    ht_tensor patches = ht_input("patches", HT_F32, ht_shape(BATCH, PATCHES, PIXELS));
    ht_tensor words = ht_input("words", HT_I32, ht_shape(BATCH, WORDS)), targets = ht_input("targets", HT_I32, ht_shape(BATCH, WORDS));
    ht_tensor weights = ht_input("weights", HT_F32, ht_shape(BATCH, 1, 1));
    ht_tensor gain = ht_param(ht_shape(WIDTH), ht_ones(), "gain"), table = weight(VOCAB, WIDTH, "table");
#pragma hspmd dims(patches, words, targets, weights : batch)
#pragma hspmd dims(table : vocab)
    ht_tensor seen = ht_linear(patches, weight(WIDTH, PIXELS, "pixels"), HT_NONE), read = ht_embedding(table, words);
    for (int l = 0; l < DEPTH; l++) {
        ht_scope("vision%d", l);
#pragma hspmd layer(vision, l)
        seen = block(seen, seen, gain, weights);
    }
    ht_tensor picture = seen;
    for (int l = 0; l < DEPTH; l++) {
        ht_scope("text%d", l);
#pragma hspmd layer(text, l)
        read = block(read, read, gain, weights);
    }
    for (int l = 0; l < JOINED; l++) {
        ht_scope("joined%d", l);
#pragma hspmd layer(l)
        read = block(read, l == 0 ? picture : read, gain, weights);
    }
#pragma hspmd layer(plain)
    read = ht_add(ht_scale(read, 0.5f), ht_mean(picture, .dim = ht_shape(1), .keepdim = true));
#pragma hspmd layer(head)
    ht_tensor logits = ht_linear(read, table, HT_NONE);
    return ht_mean(ht_mul(ht_cross_entropy(logits, targets), ht_exp(ht_reshape(weights, ht_shape(BATCH, 1)))));
}

static float patches[BATCH * PATCHES * PIXELS], weights[BATCH];
static int32_t words[BATCH * WORDS], targets[BATCH * WORDS];

static void draw_batch(uint64_t *draw)
{
    for (int i = 0; i < BATCH * PATCHES * PIXELS; i++)
        patches[i] = (float)draw_normal(draw);
    for (int i = 0; i < BATCH; i++)
        weights[i] = (float)draw_uniform(draw);
    for (int i = 0; i < BATCH * WORDS; i++) {
        words[i] = (int32_t)(draw_bits(draw) % VOCAB);
        targets[i] = (int32_t)((words[i] * 7 + 3) % VOCAB);
    }
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 20, .rate = 1e-3f});
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *towers = ht_train(session, towers_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f), .dtype = DTYPE);
#else
    ht_program *towers = ht_train(session, towers_loss, ht_adamw(.lr = options.rate, .clip = 1.0f), .dtype = DTYPE);
#endif
    uint64_t draw = options.seed;
    Progress progress = progress_start(&options, BATCH, "rows");
    for (int step = 0; step < options.steps; step++) {
        draw_batch(&draw);
        progress_step(&progress, ht_step(towers, ht_feed("patches", patches), ht_feed("weights", weights), ht_feed("words", words),
                                         ht_feed("targets", targets)));
    }
    progress_end(&progress, session);
    ht_close(session);
    return 0;
}
