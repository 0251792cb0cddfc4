/* A language model of two layers of LSTM (Hochreiter and Schmidhuber, 1997), unrolled over the places of a row. */
#include "model.h"

enum { BATCH = 12, PLACES = 5, WIDTH = 14, VOCAB = 23, LAYERS = 2 };

typedef struct Cell {
    ht_tensor h, c;
} Cell;

/* A gate of (batch, WIDTH) out of (batch, 4, WIDTH). */
static ht_tensor gate(ht_tensor gates, int which) { return ht_reshape(ht_slice(gates, 1, which, 1), ht_shape(BATCH, WIDTH)); }

static Cell stepped(ht_tensor x, Cell cell, ht_tensor wx, ht_tensor wh, ht_tensor bias)
{
    ht_tensor gates = ht_add(ht_linear(x, wx, bias), ht_linear(cell.h, wh, HT_NONE));
    ht_tensor in = ht_sigmoid(gate(gates, 0)), forget = ht_sigmoid(gate(gates, 1)), new = ht_tanh(gate(gates, 2)), out = ht_sigmoid(gate(gates, 3));
    ht_tensor c = ht_add(ht_mul(forget, cell.c), ht_mul(in, new));
    return (Cell){ht_mul(out, ht_tanh(c)), c};
}

/* All places of x (batch, PLACES, WIDTH), one after the other. */
static ht_tensor recurrent(ht_tensor x)
{
    ht_tensor wx = normal_at(0.2f, "wx", ht_shape(4, WIDTH, WIDTH)), wh = normal_at(0.2f, "wh", ht_shape(4, WIDTH, WIDTH));
    ht_tensor bias = normal_at(0.1f, "bias", ht_shape(4, WIDTH)), all[PLACES];
#pragma hspmd dims(wx, wh, bias : _, hidden)
    Cell cell = {ht_full(ht_shape(BATCH, WIDTH), 0, DTYPE), ht_full(ht_shape(BATCH, WIDTH), 0, DTYPE)};
    for (int t = 0; t < PLACES; t++) {
        cell = stepped(ht_reshape(ht_slice(x, 1, t, 1), ht_shape(BATCH, WIDTH)), cell, wx, wh, bias);
        all[t] = cell.h;
    }
    return ht_stack((ht_tensors){PLACES, all}, 1);
}

ht_tensor lstm_loss(void)
{
    ht_tensor words = ht_input("words", HT_I32, ht_shape(BATCH, PLACES)), next = ht_input("next", HT_I32, ht_shape(BATCH, PLACES));
#pragma hspmd dims(words, next : batch)
    ht_tensor table = matrix(VOCAB, WIDTH, "table"), x;
#pragma hspmd dims(table : vocab)
    x = ht_embedding(table, words);
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("lstm%d", l);
#pragma hspmd layer(l)
        x = recurrent(x);
    }
    return ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), next));
}

static int32_t words[BATCH * PLACES], next[BATCH * PLACES];

static void draw_batch(uint64_t *draw)
{
    draw_integers(draw, words, COUNT(words), VOCAB);
    draw_integers(draw, next, COUNT(next), VOCAB);
}

MODEL_MAIN(lstm_loss, BATCH, draw_batch, ht_feed("words", words), ht_feed("next", next))
