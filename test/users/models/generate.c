/* Generation with a cache on the devices: each step reads one token a row, writes its keys and values into states, and attends to what stands there. The tokens are those
 * of a program that reads the whole text again for each; both are printed. */
#include "blocks.h"

#include <string.h>

enum { BATCH = 4, LENGTH = 9, VOCAB = 24, LAYERS = 2 };

static ht_tensor embedded(ht_tensor words)
{
    ht_tensor table = normal_at(0.5f, "table", ht_shape(VOCAB, WIDTH));
#pragma hspmd dims(table : vocab)
    return ht_embedding(table, words);
}

static ht_tensor scored(ht_tensor x)
{
    ht_tensor head = normal_at(0.5f, "head", ht_shape(VOCAB, WIDTH));
#pragma hspmd dims(head : vocab)
    return ht_linear(normed(x, "norm"), head, HT_NONE);
}

/* The logits of every place of a text. */
ht_tensor whole(void)
{
    ht_tensor words = ht_input("words", HT_I32, ht_shape(BATCH, LENGTH)), x;
#pragma hspmd dims(words : batch)
    x = ht_add(embedded(words), normal_at(0.5f, "at", ht_shape(LENGTH, WIDTH)));
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x, true);
    }
    return scored(x);
}

/* A cache (batch, LENGTH, heads, _) with the new row in the place that `here`, ones and zeros of (LENGTH, 1, 1), shows. */
static ht_tensor cached(ht_tensor row, ht_tensor here, const char *name)
{
    ht_tensor cache = ht_state(ht_shape(BATCH, LENGTH, HEADS, HEAD), ht_zeros(), name), all;
#pragma hspmd dims(cache : batch, _, heads)
    all = ht_where(here, row, cache);
    ht_assign(cache, all);
    return all;
}

static ht_tensor cached_block(ht_tensor x, ht_tensor here, ht_tensor seen)
{
    ht_tensor n = normed(x, "norm0");
    {
        ht_scope("self");
        ht_tensor q = by_heads(n, "q"), k = cached(by_heads(n, "k"), here, "keys"), v = cached(by_heads(n, "v"), here, "values"), out = matrix(WIDTH, WIDTH, "out");
#pragma hspmd dims(out : _, heads)
        ht_tensor y = ht_masked_attention(q, k, v, .mask = seen);
        x = ht_add(x, ht_linear(ht_reshape(y, ht_shape(BATCH, 1, WIDTH)), out, HT_NONE));
    }
    return ht_add(x, fed_forward(normed(x, "norm1")));
}

/* The logits behind one token a row, which stands at a place. */
ht_tensor next(void)
{
    ht_tensor word = ht_input("word", HT_I32, ht_shape(BATCH, 1)), place = ht_input("place", HT_I32, ht_shape(1)), x;
#pragma hspmd dims(word : batch)
    ht_tensor at = ht_iota(LENGTH, HT_I32), here = ht_reshape(ht_eq(at, place), ht_shape(LENGTH, 1, 1)), seen = ht_le(at, place);
    x = ht_add(embedded(word), ht_embedding(normal_at(0.5f, "at", ht_shape(LENGTH, WIDTH)), place));
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = cached_block(x, here, seen);
    }
    return scored(x);
}

static int likeliest(const float *logits)
{
    int best = 0;
    for (int v = 1; v < VOCAB; v++)
        best = logits[v] > logits[best] ? v : best;
    return best;
}

static int32_t words[BATCH * LENGTH], word[BATCH], place[1];
static float all[BATCH * LENGTH * VOCAB], last[BATCH * VOCAB];

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *slow = ht_infer(session, whole), *fast = ht_infer(session, next);
    float off = 0;
    for (int b = 0; b < BATCH; b++)
        words[b * LENGTH] = word[b] = b * 5 % VOCAB;
    for (int t = 0; t + 1 < LENGTH; t++) {
        place[0] = t;
        ht_run(slow, ht_feed("words", words));
        ht_fetch(slow, "", all);
        ht_run(fast, ht_feed("word", word), ht_feed("place", place));
        ht_fetch(fast, "", last);
        for (int b = 0; b < BATCH; b++) {
            const float *wanted = all + (b * LENGTH + t) * VOCAB;
            for (int v = 0; v < VOCAB; v++)
                off = last[b * VOCAB + v] - wanted[v] > off ? last[b * VOCAB + v] - wanted[v] : wanted[v] - last[b * VOCAB + v] > off ? wanted[v] - last[b * VOCAB + v] : off;
            word[b] = words[b * LENGTH + t + 1] = likeliest(last + b * VOCAB);
            printf("%d %d ", likeliest(wanted), word[b]);
        }
    }
    printf("\n%.1g off\n", off);
    ht_close(session);
    return off < 1e-4f ? 0 : 1;
}
