/* A small Llama over bytes: RMS norms, rotary positions, gated MLP, grouped-query attention (two query heads share a key-value head), untied head.
 *
 *     hetucc --strategy=tp4 llama.c ../common/[a-z]*.c -o llama -lm
 *     ./llama
 *
 * tp4 has more devices than key-value heads: two devices share a head.
 */
#include "../common/train.h"

#include <stdlib.h>
#include <string.h>

#ifndef VOCAB
#define VOCAB 256
#endif
#ifndef EMBED
#define EMBED 96
#endif
#ifndef HEADS
#define HEADS 4
#endif
#ifndef KV_HEADS
#define KV_HEADS 2
#endif
#ifndef FFN
#define FFN 250
#endif
#ifndef LAYERS
#define LAYERS 3
#endif
#ifndef BATCH
#define BATCH 8
#endif
#ifndef SEQ
#define SEQ 48
#endif
#ifndef CLIP
#define CLIP 1.0f
#endif
#ifndef DTYPE
#define DTYPE HT_F32
#endif
#ifndef DEVIATION // standard deviation of the weights before training
#define DEVIATION 0.02f
#endif
#ifndef EPSILON // added under the root of the norms
#define EPSILON 1e-5f
#endif
#ifndef BASE // base of the rotary frequencies
#define BASE 10000.0f
#endif

enum { WIDTH = EMBED / HEADS };
_Static_assert(EMBED % HEADS == 0 && HEADS % KV_HEADS == 0 && WIDTH % 2 == 0, "heads must divide EMBED, key-value heads the heads, and a head must be even");

int seq = SEQ, batch = BATCH;
#pragma hspmd shape(seq, batch)

#pragma hspmd strategy single
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy dp4
#pragma hspmd   split batch:dp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

#pragma hspmd strategy tp4
#pragma hspmd   split heads:tp  ffn:tp  vocab:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(tp:4)
#pragma hspmd end strategy

#pragma hspmd strategy dp2tp2
#pragma hspmd   split batch:dp  heads:tp  ffn:tp  vocab:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy dp2tp2sp
#pragma hspmd   split batch:dp  heads:tp  ffn:tp  vocab:tp  seq:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2, tp:2)
#pragma hspmd end strategy

#pragma hspmd strategy zero4
#pragma hspmd   split batch:dp
#pragma hspmd   zero 1
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:4)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split batch:dp  heads:tp  ffn:tp  vocab:tp
#pragma hspmd   pipeline
#pragma hspmd     stage devices(0-3) mesh(dp:2 by 3:1, tp:2)
#pragma hspmd end strategy

static ht_tensor norm(ht_tensor x, const char *name)
{
    return ht_rms_norm(x, ht_param(ht_shape(EMBED), ht_ones(), name, .no_decay = true), EPSILON);
}

/* Returns the product of x (batch, seq, embed) and parameter `name`, as heads: (batch, seq, count, WIDTH). */
static ht_tensor project(ht_tensor x, int count, const char *name)
{
    ht_tensor w = ht_param(ht_shape(count * WIDTH, EMBED), ht_normal(DEVIATION), name);
#pragma hspmd dims(w: (heads _), embed)
    return ht_reshape(ht_linear(x, w, HT_NONE), ht_shape(ht_extent(x, 0), ht_extent(x, 1), count, WIDTH));
}

static ht_tensor attention(ht_tensor x)
{
    ht_scope("attn");
    ht_tensor q = ht_rope(project(x, HEADS, "q.w"), BASE);
    ht_tensor k = ht_rope(project(x, KV_HEADS, "k.w"), BASE);
    ht_tensor v = project(x, KV_HEADS, "v.w");
    ht_tensor y = ht_attention(q, k, v, HT_NONE, true);
    ht_tensor o = ht_param(ht_shape(EMBED, HEADS * WIDTH), ht_normal(DEVIATION), "o.w");
#pragma hspmd dims(q, y: batch, seq, heads)
#pragma hspmd dims(o: embed, (heads _))
    return ht_linear(ht_reshape(y, ht_shape(ht_extent(x, 0), ht_extent(x, 1), HEADS * WIDTH)), o, HT_NONE);
}

static ht_tensor mlp(ht_tensor x)
{
    ht_scope("mlp");
    ht_tensor gate = ht_param(ht_shape(FFN, EMBED), ht_normal(DEVIATION), "gate.w");
    ht_tensor up = ht_param(ht_shape(FFN, EMBED), ht_normal(DEVIATION), "up.w");
    ht_tensor down = ht_param(ht_shape(EMBED, FFN), ht_normal(DEVIATION), "down.w");
#pragma hspmd dims(gate, up: ffn, embed)
#pragma hspmd dims(down: embed, ffn)
    ht_tensor h = ht_mul(ht_silu(ht_linear(x, gate, HT_NONE)), ht_linear(x, up, HT_NONE));
#pragma hspmd dims(h: batch, seq, ffn)
    return ht_linear(h, down, HT_NONE);
}

static ht_tensor block(ht_tensor x)
{
    ht_tensor middle = ht_add(x, attention(norm(x, "norm1.g")));
    ht_tensor y = ht_add(middle, mlp(norm(middle, "norm2.g")));
#pragma hspmd dims(middle, y: batch, seq, embed)
    return y;
}

/* Returns the logits (batch, seq, vocab) of the byte after each of the tokens (batch, seq). */
static ht_tensor logits_of(ht_tensor tokens)
{
    ht_tensor table = ht_param(ht_shape(VOCAB, EMBED), ht_normal(1), "tokens.w");
    ht_tensor head = ht_param(ht_shape(VOCAB, EMBED), ht_normal(DEVIATION), "head.w");
#pragma hspmd dims(table, head: vocab, embed)
    ht_tensor x = ht_embedding(table, tokens);
#pragma hspmd dims(tokens, x: batch, seq)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x);
    }
    ht_tensor logits = ht_linear(norm(x, "norm.g"), head, HT_NONE);
#pragma hspmd dims(logits: batch, seq, vocab)
    return logits;
}

ht_tensor llama_loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq));
    ht_tensor targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
    return ht_mean(ht_cross_entropy(logits_of(tokens), targets));
}

/* Returns the logits of a whole batch of text, from which write_rows draws bytes. */
ht_tensor llama_next(void)
{
    return logits_of(ht_input("tokens", HT_I32, ht_shape(batch, seq)));
}

/* Keeps the first half of each row of a batch of text, draws at most `count` bytes after it, and prints the rows. */
static void write_rows(ht_program *writer, const Text *text, int count, uint64_t draw)
{
    int32_t *tokens = memory((size_t)batch * (size_t)seq, sizeof *tokens), *unused = memory((size_t)batch * (size_t)seq, sizeof *unused);
    float *logits = memory((size_t)batch * (size_t)seq * VOCAB, sizeof *logits);
    int start = seq / 2, end = start + count < seq ? start + count : seq;
    text_batch(text, &draw, batch, seq, tokens, unused);
    for (int at = start; at < end; at++) {
        ht_run(writer, ht_feed("tokens", tokens));
        ht_fetch(writer, "", logits);
        for (int r = 0; r < batch; r++)
            tokens[r * seq + at] = draw_index(&draw, logits + (size_t)(r * seq + at - 1) * VOCAB, VOCAB, 0.8f);
    }
    printf("---- given | written ----\n");
    for (int r = 0; r < batch; r++) {
        for (int at = 0; at < end; at++) {
            int c = tokens[r * seq + at];
            printf("%s%c", at == start ? "|" : "", c >= ' ' && c < 127 ? c : ' ');
        }
        printf("\n");
    }
    free(tokens);
    free(unused);
    free(logits);
}

/* Parameter names in files of transformers' LlamaForCausalLM. If a file has no head, the head is the token table. */
static const ht_stored HUB[] = {
    {"tokens.w", "model.embed_tokens.weight", false},
    {"h*.norm1.g", "model.layers.*.input_layernorm.weight", false},
    {"h*.attn.q.w", "model.layers.*.self_attn.q_proj.weight", false},
    {"h*.attn.k.w", "model.layers.*.self_attn.k_proj.weight", false},
    {"h*.attn.v.w", "model.layers.*.self_attn.v_proj.weight", false},
    {"h*.attn.o.w", "model.layers.*.self_attn.o_proj.weight", false},
    {"h*.norm2.g", "model.layers.*.post_attention_layernorm.weight", false},
    {"h*.mlp.gate.w", "model.layers.*.mlp.gate_proj.weight", false},
    {"h*.mlp.up.w", "model.layers.*.mlp.up_proj.weight", false},
    {"h*.mlp.down.w", "model.layers.*.mlp.down_proj.weight", false},
    {"norm.g", "model.norm.weight", false},
    {"head.w", "lm_head.weight", false},
    {"head.w", "model.embed_tokens.weight", false},
    {0},
};

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 200, .rate = 2e-3f, .sample = 24, .data = "/usr/share/common-licenses"});
    Text text = text_read(options.data, (size_t)seq);
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *llama = ht_train(session, llama_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f), .dtype = DTYPE);
#else
    ht_program *llama = ht_train(session, llama_loss, ht_adamw(.lr = options.rate, .clip = CLIP), .dtype = DTYPE);
#endif
    if (options.load)
        ht_load_as(session, options.load, HUB);
    int longest = options_longest(&options, seq);
    int32_t *tokens = memory((size_t)batch * (size_t)longest, sizeof *tokens);
    int32_t *targets = memory((size_t)batch * (size_t)longest, sizeof *targets);
    uint64_t draw = options.seed;
    Progress progress = progress_start(&options, (double)batch * seq, "tokens");
    int first = progress_resume(&progress, session, &draw);
    for (int step = first; step < options.steps && !progress_ended(&progress); step++) {
        const Switch *to = options_switch(&options, step == first ? -1 : step - 1, step);
        if (to) {
            int was = seq;
            seq = to->seq ? to->seq : seq;
            if (!ht_switch(llama, to->strategy))
                seq = was;
        }
        if (step > first && options.fixed && !to) {
            progress_step(&progress, ht_step(llama));
            continue;
        }
        text_batch(&text, &draw, batch, seq, tokens, targets);
        progress_step(&progress, ht_step(llama, ht_feed("tokens", tokens), ht_feed("targets", targets)));
    }
    progress_end(&progress, session);
    if (options.logits && !progress.told)
        text_logits(ht_infer(session, llama_next, .dtype = DTYPE), &text, batch, seq, VOCAB, options.logits);
    if (options.sample > 0 && !progress.told)
        write_rows(ht_infer(session, llama_next, .dtype = DTYPE), &text, options.sample, draw);
    ht_close(session);
    return 0;
}
