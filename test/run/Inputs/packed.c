/* Packed sequences: rows of several documents, each with its own positions, whose tokens see their own document alone; and documents of
 * another length, packed alike, to which they attend. */
#include "../../../examples/common/train.h"

#include <stdlib.h>

#ifndef BATCH
#define BATCH 6
#endif
#ifndef LAYERS
#define LAYERS 2
#endif
#ifndef DTYPE
#define DTYPE HT_F32
#endif

enum { VOCAB = 53, HEADS = 4, GROUPS = 2, WIDTH = 6, EMBED = HEADS * WIDTH, SEQ = 23, CONTEXT = 14, MEAN_LENGTH = 5 };

static ht_tensor norm(ht_tensor x, const char *name)
{
    return ht_rms_norm(x, ht_param(ht_shape(EMBED), ht_ones(), name, .no_decay = true), 1e-5f);
}

/* `count` heads of a projection of x. */
static ht_tensor project(ht_tensor x, int count, const char *name)
{
    ht_tensor w = ht_param(ht_shape(count * WIDTH, EMBED), ht_normal(0.3f), name);
#pragma hspmd dims(w: (heads _), embed)
    return ht_reshape(ht_linear(x, w, HT_NONE), ht_shape(BATCH, ht_extent(x, 1), count, WIDTH));
}

static ht_tensor joined(ht_tensor y, const char *name)
{
    ht_tensor w = ht_param(ht_shape(EMBED, HEADS * WIDTH), ht_normal(0.3f), name);
#pragma hspmd dims(w: embed, (heads _))
#pragma hspmd dims(y: batch, seq, heads)
    return ht_linear(ht_reshape(y, ht_shape(BATCH, SEQ, HEADS * WIDTH)), w, HT_NONE);
}

static ht_tensor block(ht_tensor x, ht_tensor position, ht_tensor segments, ht_tensor context, ht_tensor context_segments)
{
    ht_tensor n = norm(x, "norm1");
    ht_tensor q = ht_rope_positions(project(n, HEADS, "q.w"), position, 100), k = ht_rope_positions(project(n, GROUPS, "k.w"), position, 100);
    x = ht_add(x, joined(ht_attention(q, k, project(n, GROUPS, "v.w"), segments, true), "o.w"));
    n = norm(x, "norm2");
    ht_tensor cross = ht_attention_packed(project(n, HEADS, "cross.q.w"), project(context, GROUPS, "cross.k.w"), project(context, GROUPS, "cross.v.w"),
                                          segments, context_segments, false);
    x = ht_dropout(ht_add(x, joined(cross, "cross.o.w")), 0.1f);
#pragma hspmd dims(x: batch, seq, embed)
    return x;
}

ht_tensor packed_loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(BATCH, SEQ)), targets = ht_input("targets", HT_I32, ht_shape(BATCH, SEQ));
    ht_tensor segments = ht_input("segments", HT_I32, ht_shape(BATCH, SEQ)), position = ht_input("positions", HT_I32, ht_shape(BATCH, SEQ));
    ht_tensor read = ht_input("context", HT_I32, ht_shape(BATCH, CONTEXT)), of_read = ht_input("context_segments", HT_I64, ht_shape(BATCH, CONTEXT));
    ht_tensor table = ht_param(ht_shape(VOCAB, EMBED), ht_normal(1), "tokens.w"), places = ht_param(ht_shape(SEQ, EMBED), ht_normal(1), "places.w");
#pragma hspmd dims(tokens, targets, segments, position: batch, seq)
#pragma hspmd dims(read, of_read: batch, context)
    ht_tensor x = ht_add(ht_embedding(table, tokens), ht_embedding(places, position)), context = ht_embedding(table, read);
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
#pragma hspmd layer(l)
        x = block(x, position, segments, context, of_read);
    }
    return ht_mean(ht_cross_entropy(ht_linear(norm(x, "norm"), table, HT_NONE), targets));
}

/* Rows of documents of random lengths: their numbers, and the places of tokens in them (NULL: not asked for). */
static void pack(uint64_t *draw, int length, int64_t *segments, int32_t *positions)
{
    for (int i = 0; i < BATCH * length; i++) {
        bool begins = i % length == 0 || draw_bits(draw) % MEAN_LENGTH == 0;
        segments[i] = i % length == 0 ? 0 : segments[i - 1] + begins;
        if (positions)
            positions[i] = begins ? 0 : positions[i - 1] + 1;
    }
}

static void draw_tokens(uint64_t *draw, int count, int32_t *tokens)
{
    for (int i = 0; i < count; i++)
        tokens[i] = (int32_t)(draw_bits(draw) % VOCAB);
}

int main(int argc, char **argv)
{
    static int32_t tokens[BATCH * SEQ], targets[BATCH * SEQ], segments[BATCH * SEQ], positions[BATCH * SEQ], context[BATCH * CONTEXT];
    static int64_t wide[BATCH * SEQ], context_segments[BATCH * CONTEXT];
    ht_session *session = ht_open(&argc, &argv);
    Options options = options_read(argc, argv, (Options){.steps = 5, .rate = 1e-2f});
    ht_seed(session, options.seed);
#ifdef SGD
    ht_program *packed = ht_train(session, packed_loss, ht_sgd(.lr = options.rate, .momentum = 0.9f), .dtype = DTYPE);
#else
    ht_program *packed = ht_train(session, packed_loss, ht_adamw(.lr = options.rate, .clip = 1), .dtype = DTYPE);
#endif
    uint64_t draw = options.seed;
    Progress progress = progress_start(&options, BATCH * SEQ, "tokens");
    for (int step = 0; step < options.steps; step++) {
        pack(&draw, SEQ, wide, positions);
        for (int i = 0; i < BATCH * SEQ; i++)
            segments[i] = (int32_t)wide[i];
        pack(&draw, CONTEXT, context_segments, NULL);
        draw_tokens(&draw, BATCH * SEQ, tokens);
        draw_tokens(&draw, BATCH * SEQ, targets);
        draw_tokens(&draw, BATCH * CONTEXT, context);
        progress_step(&progress, ht_step(packed, ht_feed("tokens", tokens), ht_feed("targets", targets), ht_feed("segments", segments),
                                         ht_feed("positions", positions), ht_feed("context", context), ht_feed("context_segments", context_segments)));
    }
    progress_end(&progress, session);
    ht_close(session);
    return 0;
}
