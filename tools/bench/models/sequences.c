/* Models of sequences: LSTM (Hochreiter and Schmidhuber, 1997), GRU (Cho et al., 2014), BERT
 * (Devlin et al., 2018), a mixture of experts (Lepikhin et al., 2020), Llama (Touvron et al.,
 * 2023), and a layer of running means (a scan). */
#include "timed.h"

enum { VOCAB = 256 };

/* The rows of a table of tokens, and the loss of the tokens that come next. */
static ht_tensor words(int vocab, int batch, int places, int width) {
    ht_tensor ids = ht_input("x", HT_I32, ht_shape(batch, places));
    return ht_embedding(normal(ht_shape(vocab, width), "table"), ids);
}

static ht_tensor predicted(ht_tensor x, int vocab) {
    ht_tensor next = ht_input("y", HT_I32, ht_shape(ht_extent(x, 0), ht_extent(x, 1)));
    return ht_mean(ht_cross_entropy(dense(x, vocab, "head"), next));
}

enum { ROWS = 16, PLACES = 64, WIDTH = 256 };

/* The places of a row in PARTS parts: a call takes at most 29 tensors. */
enum { PARTS = 4, EACH = PLACES / PARTS };

/* Place t of x (ROWS, PLACES, ...), which `parts` cut. */
static ht_tensor at_place(const ht_tensor *parts, int t, ht_dims dims) {
    return ht_reshape(ht_slice(parts[t / EACH], 1, t % EACH, 1), dims);
}

static void cut(ht_tensor *parts, ht_tensor x) {
    for (int i = 0; i < PARTS; i++) parts[i] = ht_slice(x, 1, i * EACH, EACH);
}

/* Gate `which` of (ROWS, gates, WIDTH). */
static ht_tensor gate(ht_tensor gates, int which) {
    return ht_reshape(ht_slice(gates, 1, which, 1), ht_shape(ROWS, WIDTH));
}

/* (ROWS, PLACES, WIDTH) out of PLACES tensors. */
static ht_tensor joined(const ht_tensor *all) {
    ht_tensor parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = ht_stack((ht_tensors){EACH, all + i * EACH}, 1);
    return ht_concat((ht_tensors){PARTS, parts}, 1);
}

/* A layer over x (ROWS, PLACES, WIDTH), place after place. */
static ht_tensor lstm_layer(ht_tensor x) {
    ht_tensor wx = normal(ht_shape(4, WIDTH, WIDTH), "wx"),
              wh = normal(ht_shape(4, WIDTH, WIDTH), "wh"), all[PLACES];
    ht_tensor bx = normal(ht_shape(4, WIDTH), "bx"), bh = normal(ht_shape(4, WIDTH), "bh");
    ht_tensor h = ht_full(ht_shape(ROWS, WIDTH), 0, DTYPE),
              c = ht_full(ht_shape(ROWS, WIDTH), 0, DTYPE);
    ht_tensor given[PARTS];
    cut(given, ht_linear(x, wx, bx));
    for (int t = 0; t < PLACES; t++) {
        ht_tensor gates =
            ht_add(at_place(given, t, ht_shape(ROWS, 4, WIDTH)), ht_linear(h, wh, bh));
        ht_tensor made = ht_mul(ht_sigmoid(gate(gates, 0)), ht_tanh(gate(gates, 2)));
        c = ht_add(ht_mul(ht_sigmoid(gate(gates, 1)), c), made);
        all[t] = h = ht_mul(ht_sigmoid(gate(gates, 3)), ht_tanh(c));
    }
    return joined(all);
}

ht_tensor lstm(void) {
    ht_tensor x = words(VOCAB, ROWS, PLACES, WIDTH);
    for (int l = 0; l < 2; l++) {
        ht_scope("layer%d", l);
        x = lstm_layer(x);
    }
    return predicted(x, VOCAB);
}

static ht_tensor gru_layer(ht_tensor x) {
    ht_tensor wx = normal(ht_shape(3, WIDTH, WIDTH), "wx"),
              wh = normal(ht_shape(3, WIDTH, WIDTH), "wh"), all[PLACES];
    ht_tensor bx = normal(ht_shape(3, WIDTH), "bx"), bh = normal(ht_shape(3, WIDTH), "bh");
    ht_tensor h = ht_full(ht_shape(ROWS, WIDTH), 0, DTYPE), given[PARTS];
    cut(given, ht_linear(x, wx, bx));
    for (int t = 0; t < PLACES; t++) {
        ht_tensor in = at_place(given, t, ht_shape(ROWS, 3, WIDTH)), own = ht_linear(h, wh, bh);
        ht_tensor reset = ht_sigmoid(ht_add(gate(in, 0), gate(own, 0)));
        ht_tensor keep = ht_sigmoid(ht_add(gate(in, 1), gate(own, 1)));
        ht_tensor made = ht_tanh(ht_add(gate(in, 2), ht_mul(reset, gate(own, 2))));
        all[t] = h = ht_add(made, ht_mul(keep, ht_sub(h, made)));
    }
    return joined(all);
}

ht_tensor gru(void) {
    ht_tensor x = words(VOCAB, ROWS, PLACES, WIDTH);
    for (int l = 0; l < 2; l++) {
        ht_scope("layer%d", l);
        x = gru_layer(x);
    }
    return predicted(x, VOCAB);
}

ht_tensor bert(void) {
    enum { VOCAB_BERT = 8192 };
    ht_tensor x = words(VOCAB_BERT, 8, 128, WIDTH);
    x = layer_normed(ht_add(x, normal(ht_shape(128, WIDTH), "at")), "norm");
    for (int l = 0; l < 4; l++) {
        ht_scope("h%d", l);
        x = layer_normed(ht_add(x, attended(x, 4, false)), "norm0");
        x = layer_normed(ht_add(x, dense(ht_gelu_erf(dense(x, 4 * WIDTH, "up")), WIDTH, "down")),
                         "norm1");
    }
    return predicted(x, VOCAB_BERT);
}

enum { EXPERTS = 8, ROOM = 16, NARROW = 128 };

/* Numbers of (row, place, expert, room): 1 where a place has a room of an expert. */
static ht_tensor rooms(ht_tensor chosen) {
    ht_tensor before = ht_sub(ht_cumsum(chosen, 1), chosen),
              none = ht_full(ht_dims_of(chosen), -1, HT_I64);
    ht_tensor at = ht_where(ht_gt(chosen, ht_scalar(0.5)), ht_cast(before, HT_I64), none);
    return ht_cast(ht_one_hot(at, ROOM), HT_F32);
}

static ht_tensor largest(ht_tensor share) {
    return ht_cast(ht_one_hot(ht_argmax(share, .dim = ht_shape(-1)), EXPERTS), HT_F32);
}

/* Each place goes to two experts, as long as they have room. */
static ht_tensor experts(ht_tensor x) {
    ht_tensor up = normal(ht_shape(EXPERTS, NARROW, 4 * NARROW), "up");
    ht_tensor down = normal(ht_shape(EXPERTS, 4 * NARROW, NARROW), "down");
    ht_tensor share = ht_softmax(dense(x, EXPERTS, "gate"));
    ht_tensor best = largest(share),
              send = rooms(ht_add(best, largest(ht_mul(share, ht_sub(ht_scalar(1), best)))));
    ht_tensor sent = ht_einsum("bper,bpw->ebrw", ht_list(send, x));
    ht_tensor made = ht_gelu(ht_einsum("ebrw,ewf->ebrf", ht_list(sent, up)));
    made = ht_einsum("ebrf,efw->ebrw", ht_list(made, down));
    return ht_einsum("bper,ebrw,bpe->bpw", ht_list(send, made, share));
}

ht_tensor moe(void) {
    ht_tensor x = words(VOCAB, 8, PLACES, NARROW);
    for (int l = 0; l < 2; l++) {
        ht_scope("h%d", l);
        x = ht_add(x, attended(layer_normed(x, "norm0"), 4, true));
        x = ht_add(x, experts(layer_normed(x, "norm1")));
    }
    return predicted(x, VOCAB);
}

/* A linear layer without a bias. */
static ht_tensor product(ht_tensor x, int outputs, const char *name) {
    return ht_linear(x, normal(ht_shape(outputs, ht_extent(x, -1)), name), HT_NONE);
}

static ht_tensor rms_normed(ht_tensor x, const char *name) {
    return ht_rms_norm(x, ht_param(ht_shape(ht_extent(x, -1)), ht_ones(), name), 1e-5f);
}

ht_tensor llama(void) {
    enum { LONG = 2048, HEADS = 8, GROUPS = 4, HEAD = WIDTH / HEADS, FFN = 688 };
    ht_tensor x = words(VOCAB, 1, LONG, WIDTH);
    for (int l = 0; l < 4; l++) {
        ht_scope("h%d", l);
        ht_tensor n = rms_normed(x, "norm0");
        ht_tensor q = ht_reshape(product(n, WIDTH, "q"), ht_shape(1, LONG, HEADS, HEAD));
        ht_tensor k = ht_reshape(product(n, GROUPS * HEAD, "k"), ht_shape(1, LONG, GROUPS, HEAD));
        ht_tensor v = ht_reshape(product(n, GROUPS * HEAD, "v"), ht_shape(1, LONG, GROUPS, HEAD));
        ht_tensor y = ht_attention(ht_rope(q, 10000), ht_rope(k, 10000), v, HT_NONE, true);
        x = ht_add(x, product(ht_reshape(y, ht_shape(1, LONG, WIDTH)), WIDTH, "out"));
        n = rms_normed(x, "norm1");
        y = ht_mul(ht_silu(product(n, FFN, "gate")), product(n, FFN, "up"));
        x = ht_add(x, product(y, WIDTH, "down"));
    }
    return predicted(rms_normed(x, "norm"), VOCAB);
}

ht_tensor scan(void) {
    ht_tensor x = words(VOCAB, 8, 512, WIDTH);
    for (int l = 0; l < 2; l++) {
        ht_scope("h%d", l);
        ht_tensor n = layer_normed(x, "norm"), weight = ht_exp(dense(n, WIDTH, "key"));
        ht_tensor sum = ht_cumsum(ht_mul(weight, dense(n, WIDTH, "value")), 1);
        ht_tensor y =
            ht_mul(ht_sigmoid(dense(n, WIDTH, "gate")), ht_div(sum, ht_cumsum(weight, 1)));
        x = ht_add(x, dense(y, WIDTH, "out"));
    }
    return predicted(x, VOCAB);
}
