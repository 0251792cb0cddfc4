/* An encoder and a decoder (Vaswani et al., 2017), of unequal lengths; padding of the targets counts nothing. */
#include "blocks.h"

enum { BATCH = 12, SOURCE = 7, TARGET = 5, VOCAB = 31, LAYERS = 2, NOTHING = -100 };

static ht_tensor decoder(ht_tensor x, ht_tensor read)
{
    ht_tensor n = normed(x, "norm0");
    x = ht_add(x, attended(n, n, true, "self"));
    x = ht_add(x, attended(normed(x, "norm1"), read, false, "cross"));
    return ht_add(x, fed_forward(normed(x, "norm2")));
}

ht_tensor translate_loss(void)
{
    ht_tensor source = ht_input("source", HT_I32, ht_shape(BATCH, SOURCE)), target = ht_input("target", HT_I32, ht_shape(BATCH, TARGET));
    ht_tensor next = ht_input("next", HT_I32, ht_shape(BATCH, TARGET)), table = matrix(VOCAB, WIDTH, "table");
#pragma hspmd dims(source, target, next : batch)
#pragma hspmd dims(table : vocab)
    ht_tensor read = ht_add(ht_embedding(table, source), normal_at(0.1f, "at.source", ht_shape(SOURCE, WIDTH)));
    ht_tensor x = ht_add(ht_embedding(table, target), normal_at(0.1f, "at.target", ht_shape(TARGET, WIDTH)));
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("encoder%d", l);
#pragma hspmd layer(encoder, l)
        read = block(read, false);
    }
    ht_tensor memory = normed(read, "norm");
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("decoder%d", l);
#pragma hspmd layer(l)
        x = decoder(x, memory);
    }
    ht_tensor logits = ht_linear(normed(x, "last"), table, HT_NONE);
    return ht_cross_entropy_loss(ht_reshape(logits, ht_shape(BATCH * TARGET, VOCAB)), ht_reshape(next, ht_shape(BATCH * TARGET)), .ignore_index = NOTHING,
                                 .reduction = HT_REDUCE_SUM);
}

static int32_t source[BATCH * SOURCE], target[BATCH * TARGET], next[BATCH * TARGET];

static void draw_batch(uint64_t *draw)
{
    draw_integers(draw, source, COUNT(source), VOCAB);
    draw_integers(draw, target, COUNT(target), VOCAB);
    draw_integers(draw, next, COUNT(next), VOCAB);
    for (int i = 0; i < BATCH; i++)
        next[i * TARGET + TARGET - 1 - i % 3] = NOTHING;
}

MODEL_MAIN(translate_loss, BATCH, draw_batch, ht_feed("source", source), ht_feed("target", target), ht_feed("next", next))
