/* A small GPT-2 over bytes: pre-norm blocks, learned positions, fused query, key and value, tied head.
 *
 *     hetucc --strategy=strategies/dp4.strategy gpt.c ../common/[a-z]*.c -o gpt -lm
 *     ./gpt --steps 200
 *
 * Every size can be set with -D (PLACES is the longest row that strategies may ask for); -DSGD trains by SGD with momentum instead of AdamW, -DDTYPE=HT_BF16 computes in bf16.
 */
#include "../common/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef VOCAB
#define VOCAB 256
#endif
#ifndef EMBED
#define EMBED 128
#endif
#ifndef HEADS
#define HEADS 4
#endif
#ifndef LAYERS
#define LAYERS 4
#endif
#ifndef BATCH
#define BATCH 8
#endif
#ifndef SEQ
#define SEQ 64
#endif
#ifndef PLACES
#define PLACES SEQ
#endif
#ifndef DROPOUT
#define DROPOUT 0.0f
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

enum { WIDTH = EMBED / HEADS, FFN = 4 * EMBED };
_Static_assert(EMBED % HEADS == 0, "EMBED must be a multiple of HEADS");

int seq = SEQ, batch = BATCH;
#pragma hspmd shape(seq, batch)

static const float EPSILON = 1e-5f;

static ht_tensor bias(int count, const char *name)
{
    return ht_param(ht_shape(count), ht_zeros(), name, .no_decay = true);
}

static ht_tensor norm(ht_tensor x, const char *name)
{
    ht_scope("%s", name);
    ht_tensor gain = ht_param(ht_shape(EMBED), ht_ones(), "g", .no_decay = true);
    return ht_layer_norm(x, gain, bias(EMBED, "b"), EPSILON);
}

static ht_tensor drop(ht_tensor x)
{
    return DROPOUT > 0 ? ht_dropout(x, DROPOUT) : x;
}

/* Returns query (`index` 0), key (1) or value (2) of qkv (batch, seq, 3, heads, width). */
static ht_tensor part(ht_tensor qkv, int index)
{
    ht_tensor x = ht_slice(qkv, 2, index, 1);
    return ht_reshape(x, ht_shape(ht_extent(x, 0), ht_extent(x, 1), HEADS, WIDTH));
}

/* x: (batch, seq, embed). One parameter has the weights of query, key and value; it is cut by heads. */
static ht_tensor attention(ht_tensor x, float deviation)
{
    ht_scope("attn");
    int64_t rows = ht_extent(x, 0), length = ht_extent(x, 1);
    ht_tensor qkv_w = ht_param(ht_shape(3 * HEADS * WIDTH, EMBED), ht_normal(DEVIATION), "qkv.w");
    ht_tensor proj_w = ht_param(ht_shape(EMBED, HEADS * WIDTH), ht_normal(deviation), "proj.w");
#pragma hspmd dims(qkv_w: (_ heads _), embed)
#pragma hspmd dims(proj_w: embed, (heads _))
    ht_tensor fused = ht_linear(x, qkv_w, bias(3 * HEADS * WIDTH, "qkv.b"));
    ht_tensor qkv = ht_reshape(fused, ht_shape(rows, length, 3, HEADS, WIDTH));
    ht_tensor y = ht_attention(part(qkv, 0), part(qkv, 1), part(qkv, 2), HT_NONE, true);
#pragma hspmd dims(qkv: batch, seq, _, heads)
#pragma hspmd dims(y: batch, seq, heads)
    ht_tensor joined = ht_reshape(y, ht_shape(rows, length, HEADS * WIDTH));
    return drop(ht_linear(joined, proj_w, bias(EMBED, "proj.b")));
}

static ht_tensor mlp(ht_tensor x, float deviation)
{
    ht_scope("mlp");
    ht_tensor up = ht_param(ht_shape(FFN, EMBED), ht_normal(DEVIATION), "up.w");
    ht_tensor down = ht_param(ht_shape(EMBED, FFN), ht_normal(deviation), "down.w");
#pragma hspmd dims(up: ffn, embed)
#pragma hspmd dims(down: embed, ffn)
    ht_tensor h = ht_gelu(ht_linear(x, up, bias(FFN, "up.b")));
#pragma hspmd dims(h: batch, seq, ffn)
    return drop(ht_linear(h, down, bias(EMBED, "down.b")));
}

static ht_tensor block(ht_tensor x)
{
    float deviation = DEVIATION / sqrtf(2.0f * LAYERS);
    ht_tensor middle = ht_add(x, attention(norm(x, "ln1"), deviation));
    ht_tensor y = ht_add(middle, mlp(norm(middle, "ln2"), deviation));
#pragma hspmd dims(middle, y: batch, seq, embed)
    return y;
}

/* Returns the logits (batch, seq, vocab) of the byte after each of the tokens (batch, seq). */
static ht_tensor logits_of(ht_tensor tokens)
{
    ht_tensor table = ht_param(ht_shape(VOCAB, EMBED), ht_normal(DEVIATION), "tokens.w");
    ht_tensor places = ht_param(ht_shape(PLACES, EMBED), ht_normal(DEVIATION), "places.w");
#pragma hspmd dims(table: vocab, embed)
    ht_tensor place = ht_embedding(places, ht_iota(seq, HT_I32));
    ht_tensor x = drop(ht_add(ht_embedding(table, tokens), place));
#pragma hspmd dims(tokens, x: batch, seq)
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x);
    }
    ht_tensor logits = ht_linear(norm(x, "ln"), table, HT_NONE);
#pragma hspmd dims(logits: batch, seq, vocab)
    return logits;
}

ht_tensor gpt_loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(batch, seq));
    ht_tensor targets = ht_input("targets", HT_I32, ht_shape(batch, seq));
#pragma hspmd dims(targets: batch, seq)
    return ht_mean(ht_cross_entropy(logits_of(tokens), targets));
}

/* Returns the logits of one row of text, from which write_text draws bytes. */
ht_tensor gpt_next(void)
{
    return logits_of(ht_input("tokens", HT_I32, ht_shape(1, seq)));
}

/* Prints `count` bytes that the model writes after `start`. */
static void write_text(ht_program *writer, const char *start, int count, uint64_t draw)
{
    int32_t *tokens = memory((size_t)seq, sizeof *tokens);
    float *logits = memory((size_t)seq * VOCAB, sizeof *logits);
    int length = 0;
    for (const char *c = start; *c && length < seq; c++)
        tokens[length++] = (unsigned char)*c;
    printf("---- the model writes ----\n%s", start);
    for (int i = 0; i < count; i++) {
        ht_run(writer, ht_feed("tokens", tokens));
        ht_fetch(writer, "", logits);
        int next = draw_index(&draw, logits + (size_t)(length - 1) * VOCAB, VOCAB, 0.8f);
        putchar(next < 256 ? next : '?');
        if (length == seq)
            memmove(tokens, tokens + 1, (size_t)--length * sizeof *tokens);
        tokens[length++] = next;
    }
    printf("\n");
    free(tokens);
    free(logits);
}

/* Parameter names in files of transformers' GPT2LMHeadModel and of the Hugging Face hub; true: the file has the transposed matrix (Conv1D). */
#define BOTH(name, theirs, ...) {name, "transformer." theirs, __VA_ARGS__}, {name, theirs, __VA_ARGS__}
static const ht_stored HUB[] = {
    BOTH("tokens.w", "wte.weight", false),
    BOTH("places.w", "wpe.weight", false),
    BOTH("h*.ln1.g", "h.*.ln_1.weight", false),
    BOTH("h*.ln1.b", "h.*.ln_1.bias", false),
    BOTH("h*.attn.qkv.w", "h.*.attn.c_attn.weight", true),
    BOTH("h*.attn.qkv.b", "h.*.attn.c_attn.bias", false),
    BOTH("h*.attn.proj.w", "h.*.attn.c_proj.weight", true),
    BOTH("h*.attn.proj.b", "h.*.attn.c_proj.bias", false),
    BOTH("h*.ln2.g", "h.*.ln_2.weight", false),
    BOTH("h*.ln2.b", "h.*.ln_2.bias", false),
    BOTH("h*.mlp.up.w", "h.*.mlp.c_fc.weight", true),
    BOTH("h*.mlp.up.b", "h.*.mlp.c_fc.bias", false),
    BOTH("h*.mlp.down.w", "h.*.mlp.c_proj.weight", true),
    BOTH("h*.mlp.down.b", "h.*.mlp.c_proj.bias", false),
    BOTH("ln.g", "ln_f.weight", false),
    BOTH("ln.b", "ln_f.bias", false),
    {0},
};

/* Parameters in the order of llm.c's checkpoints of GPT-2. A name with %d stands for this parameter of layer 0, then of layer 1, and so on. */
static const struct {
    const char *name;
    size_t count;
} LLM_C[] = {{"tokens.w", (size_t)VOCAB * EMBED},
             {"places.w", (size_t)PLACES * EMBED},
             {"h%d.ln1.g", EMBED},
             {"h%d.ln1.b", EMBED},
             {"h%d.attn.qkv.w", (size_t)3 * EMBED * EMBED},
             {"h%d.attn.qkv.b", 3 * EMBED},
             {"h%d.attn.proj.w", (size_t)EMBED * EMBED},
             {"h%d.attn.proj.b", EMBED},
             {"h%d.ln2.g", EMBED},
             {"h%d.ln2.b", EMBED},
             {"h%d.mlp.up.w", (size_t)FFN * EMBED},
             {"h%d.mlp.up.b", FFN},
             {"h%d.mlp.down.w", (size_t)EMBED * FFN},
             {"h%d.mlp.down.b", EMBED},
             {"ln.g", EMBED},
             {"ln.b", EMBED}};

/* Reads `count` elements of a file of f32, or of bf16 (`half`), to `to`. */
static void read_floats(FILE *in, const char *path, bool half, float *to, size_t count)
{
    if (fread(to, half ? sizeof(uint16_t) : sizeof *to, count, in) != count) {
        fprintf(stderr, "gpt: %s ends early\n", path);
        exit(1);
    }
    for (size_t i = count; half && i-- > 0;) {
        uint16_t brain;
        memcpy(&brain, (char *)to + i * sizeof brain, sizeof brain);
        uint32_t word = (uint32_t)brain << 16;
        memcpy(&to[i], &word, sizeof word);
    }
}

/* Reads a checkpoint of llm.c's train_gpt2: a header of 256 numbers (magic, version: 3 f32, 5 bf16; places, words, layers, heads, width, rows of the table), then LLM_C. Rows of the table beyond
 * VOCAB are left out. */
static void load_llm_c(ht_session *session, const char *path)
{
    int32_t header[256] = {0};
    FILE *in = fopen(path, "rb");
    if (!in || fread(header, sizeof header, 1, in) != 1 || header[0] != 20240326 || (header[1] != 3 && header[1] != 5) || header[2] != PLACES || header[7] < VOCAB || header[4] != LAYERS ||
        header[5] != HEADS || header[6] != EMBED) {
        fprintf(stderr, in ? "gpt: %s is no GPT-2 of llm.c with %d places, %d words, %d layers, %d heads and a width of %d\n" : "gpt: cannot read %s\n", path, PLACES, VOCAB, LAYERS, HEADS, EMBED);
        exit(1);
    }
    float *values = memory((size_t)(header[7] + FFN) * EMBED, sizeof *values);
    for (size_t i = 0; i < sizeof LLM_C / sizeof *LLM_C; i++)
        for (int layer = 0; layer < (*LLM_C[i].name == 'h' ? LAYERS : 1); layer++) {
            char name[40];
            snprintf(name, sizeof name, LLM_C[i].name, layer);
            read_floats(in, path, header[1] == 5, values, i ? LLM_C[i].count : (size_t)header[7] * EMBED);
            ht_set_param(session, name, values, LLM_C[i].count);
        }
    free(values);
    fclose(in);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 200, .rate = 1e-3f, .sample = 200, .data = "/usr/share/common-licenses"});
    Text text = text_read(options.data, (size_t)seq);
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *gpt = ht_train(session, gpt_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f), .dtype = DTYPE);
#else
    ht_program *gpt = ht_train(session, gpt_loss, ht_adamw(.lr = options.rate, .clip = CLIP), .dtype = DTYPE);
#endif
    const char *suffix = options.load ? strrchr(options.load, '.') : NULL;
    if (suffix && !strcmp(suffix, ".bin"))
        load_llm_c(session, options.load);
    else if (options.load)
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
            if (!ht_switch(gpt, to->strategy))
                seq = was;
        }
        if (step > first && options.fixed && !to) {
            progress_step(&progress, ht_step(gpt));
            continue;
        }
        text_batch(&text, &draw, batch, seq, tokens, targets);
        progress_step(&progress, ht_step(gpt, ht_feed("tokens", tokens), ht_feed("targets", targets)));
    }
    progress_end(&progress, session);
    if (options.logits && !progress.told)
        text_logits(ht_infer(session, gpt_next, .dtype = DTYPE), &text, 1, seq, VOCAB, options.logits);
    if (options.sample > 0 && !progress.told)
        write_text(ht_infer(session, gpt_next, .dtype = DTYPE), "The ", options.sample, draw);
    ht_close(session);
    return 0;
}
