/* Transformer blocks of the models of this folder. */
#ifndef MODELS_BLOCKS_H
#define MODELS_BLOCKS_H

#include "model.h"

enum { HEADS = 3, HEAD = 6, WIDTH = HEADS * HEAD, FFN = 30 };

/* x (batch, places, WIDTH) by heads: (batch, places, HEADS, HEAD). */
static inline ht_tensor by_heads(ht_tensor x, const char *name)
{
    ht_tensor w = normal_at(0.15f, name, ht_shape(HEADS, HEAD, WIDTH)), y = ht_linear(x, w, HT_NONE);
#pragma hspmd dims(w : heads, _, _)
    return y;
}

/* What the places of x find at those of `read`. */
static inline ht_tensor attended(ht_tensor x, ht_tensor read, bool causal, const char *name)
{
    ht_scope("%s", name);
    ht_tensor q = by_heads(x, "q"), k = by_heads(read, "k"), v = by_heads(read, "v"), out = matrix(WIDTH, WIDTH, "out");
#pragma hspmd dims(out : _, heads)
    ht_tensor y = ht_attention(q, k, v, HT_NONE, causal);
    return ht_linear(ht_reshape(y, ht_shape(ht_extent(y, 0), ht_extent(y, 1), WIDTH)), out, HT_NONE);
}

static inline ht_tensor fed_forward(ht_tensor x)
{
    ht_tensor up = matrix(FFN, WIDTH, "up"), down = matrix(WIDTH, FFN, "down"), bias = vector(FFN, "bias");
#pragma hspmd dims(up, bias : ffn)
#pragma hspmd dims(down : _, ffn)
    return ht_linear(ht_gelu(ht_linear(x, up, bias)), down, HT_NONE);
}

/* A block of pre-norm self-attention and a feed-forward net. */
static inline ht_tensor block(ht_tensor x, bool causal)
{
    ht_tensor n = normed(x, "norm0");
    x = ht_add(x, attended(n, n, causal, "self"));
    return ht_add(x, fed_forward(normed(x, "norm1")));
}

#endif
