/* CLIP (Radford et al., 2021): a tower of images and one of texts, whose rows belong together by their number; the temperature is learnt. */
#include "blocks.h"

enum { BATCH = 12, PATCHES = 5, PIXELS = 8, WORDS = 7, VOCAB = 29, LAYERS = 2, SPACE = 10 };

/* Rows of length 1 in the space that both towers share. */
static ht_tensor projected(ht_tensor x, const char *name)
{
    ht_tensor y = ht_linear(ht_mean(x, .dim = ht_shape(1)), matrix(SPACE, WIDTH, name), HT_NONE);
    return ht_mul(y, ht_rsqrt(ht_add(ht_sum(ht_mul(y, y), .dim = ht_shape(-1), .keepdim = true), ht_scalar(1e-6))));
}

ht_tensor clip_loss(void)
{
    ht_tensor patches = ht_input("patches", HT_F32, ht_shape(BATCH, PATCHES, PIXELS)), words = ht_input("words", HT_I32, ht_shape(BATCH, WORDS));
#pragma hspmd dims(patches, words : batch)
    ht_tensor table = matrix(VOCAB, WIDTH, "table");
#pragma hspmd dims(table : vocab)
    ht_tensor seen = ht_linear(patches, matrix(WIDTH, PIXELS, "pixels"), HT_NONE), read = ht_embedding(table, words);
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("vision%d", l);
#pragma hspmd layer(vision, l)
        seen = block(seen, false);
    }
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("text%d", l);
#pragma hspmd layer(text, l)
        read = block(read, true);
    }
    ht_tensor scale = ht_exp(ht_param(ht_shape(), ht_constant(1.5f), "scale", .no_decay = true));
    return ht_contrastive_loss(projected(seen, "from.vision"), projected(read, "from.text"), scale);
}

static float patches[BATCH * PATCHES * PIXELS];
static int32_t words[BATCH * WORDS];

static void draw_batch(uint64_t *draw)
{
    draw_normals(draw, patches, COUNT(patches));
    draw_integers(draw, words, COUNT(words), VOCAB);
}

MODEL_MAIN(clip_loss, BATCH, draw_batch, ht_feed("patches", patches), ht_feed("words", words))
