/* A transformer whose feed-forward nets are mixtures of experts (MoE; Lepikhin et al., GShard, 2020).
 * A gate sends each token to its two best experts. An expert takes CAPACITY tokens of a row; tokens
 * beyond the capacity are dropped: only the residual connection carries them on. A loss term
 * balances the load of experts. */
#include "blocks.h"

enum { BATCH = 12, PLACES = 5, VOCAB = 27, LAYERS = 2, EXPERTS = 4, CAPACITY = 4 };

/* Returns the dispatch mask (batch, place, expert, slot): 1 where a token has this slot of this
 * expert. A token's slot is the number of earlier tokens of its row that chose the expert;
 * ht_one_hot gives only zeros for a slot of CAPACITY or more, and so drops the token. */
static ht_tensor dispatch_mask(ht_tensor chosen)
{
    ht_tensor before = ht_sub(ht_cumsum(chosen, 1), chosen);
    ht_tensor slot = ht_where(ht_gt(chosen, ht_scalar(0.5)), ht_cast(before, HT_I64), ht_full(ht_dims_of(chosen), -1, HT_I64));
    return ht_cast(ht_one_hot(slot, CAPACITY), HT_F32);
}

typedef struct Mixed {
    ht_tensor y, balance;
} Mixed;

static Mixed experts(ht_tensor x)
{
    ht_tensor up = normal_at(0.15f, "up", ht_shape(EXPERTS, WIDTH, FFN)), down = normal_at(0.15f, "down", ht_shape(EXPERTS, FFN, WIDTH));
#pragma hspmd dims(up, down : expert)
    ht_tensor share = ht_softmax(ht_linear(x, matrix(EXPERTS, WIDTH, "gate"), HT_NONE));
    ht_tensor best = ht_cast(ht_one_hot(ht_argmax(share, .dim = ht_shape(-1)), EXPERTS), HT_F32), left = ht_mul(share, ht_sub(ht_scalar(1), best));
    ht_tensor second = ht_cast(ht_one_hot(ht_argmax(left, .dim = ht_shape(-1)), EXPERTS), HT_F32);
    ht_tensor send = dispatch_mask(ht_add(best, second));
    ht_tensor sent = ht_einsum("bper,bpw->ebrw", ht_list(send, x));
#pragma hspmd dims(sent : expert, _)
    ht_tensor made = ht_einsum("ebrf,efw->ebrw", ht_list(ht_gelu(ht_einsum("ebrw,ewf->ebrf", ht_list(sent, up))), down));
    ht_tensor y = ht_einsum("bper,ebrw,bpe->bpw", ht_list(send, made, share));
    ht_tensor often = ht_mean(best, .dim = ht_shape(0, 1)), likely = ht_mean(share, .dim = ht_shape(0, 1));
    return (Mixed){y, ht_scale(ht_sum(ht_mul(often, likely)), EXPERTS)};
}

static ht_tensor balance;

static ht_tensor mixed_block(ht_tensor x)
{
    ht_tensor n = normed(x, "norm0");
    x = ht_add(x, attended(n, n, true, "self"));
    Mixed mixed = experts(normed(x, "norm1"));
    balance = ht_present(balance) ? ht_add(balance, mixed.balance) : mixed.balance;
    return ht_add(x, mixed.y);
}

ht_tensor moe_loss(void)
{
    ht_tensor words = ht_input("words", HT_I32, ht_shape(BATCH, PLACES)), next = ht_input("next", HT_I32, ht_shape(BATCH, PLACES));
#pragma hspmd dims(words, next : batch)
    ht_tensor table = matrix(VOCAB, WIDTH, "table"), x;
#pragma hspmd dims(table : vocab)
    x = ht_embedding(table, words);
    balance = HT_NONE;
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = mixed_block(x);
    }
    ht_tensor loss = ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), next));
    return ht_add(loss, ht_scale(balance, 0.01f));
}

static int32_t words[BATCH * PLACES], next[BATCH * PLACES];

static void draw_batch(uint64_t *draw)
{
    draw_integers(draw, words, COUNT(words), VOCAB);
    draw_integers(draw, next, COUNT(next), VOCAB);
}

MODEL_MAIN(moe_loss, BATCH, draw_batch, ht_feed("words", words), ht_feed("next", next))
