#include <hetu/hetu.h>

#include <stdlib.h>

enum { BATCH = 8, SEQ = 6, VOCAB = 16, WIDTH = 4 };

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(BATCH, SEQ)), targets = ht_input("targets", HT_I32, ht_shape(BATCH, SEQ));
    ht_tensor table = ht_param(ht_shape(VOCAB, WIDTH), ht_normal(0.1f), "table");
#pragma hspmd dims(tokens, targets: batch, seq)
#pragma hspmd dims(table: vocab, _)
#ifdef FLAT
    tokens = ht_reshape(tokens, ht_shape(BATCH * SEQ));
    targets = ht_reshape(targets, ht_shape(BATCH * SEQ));
#endif
#ifdef GATHER
    return ht_mean(ht_gather(ht_linear(ht_embedding(table, targets), table, HT_NONE), 2, ht_unsqueeze(tokens, 2)));
#endif
    ht_tensor logits = ht_linear(ht_embedding(table, tokens), table, HT_NONE);
#ifdef IGNORED
    return ht_cross_entropy_loss(logits, targets, .ignore_index = 77);
#endif
    return ht_mean(ht_cross_entropy(logits, targets));
}

/* program TOKEN-ELEMENT TARGET-ELEMENT [TARGET]: which elements are wrong, -1 for none, and what that target is. */
int main(int argc, char **argv)
{
    static int32_t tokens[BATCH * SEQ], targets[BATCH * SEQ];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    int token = atoi(argv[1]), target = atoi(argv[2]);
    if (token >= 0)
        tokens[token] = 99;
    if (target >= 0)
        targets[target] = argc > 3 ? atoi(argv[3]) : 77;
    ht_step(program, ht_feed("tokens", tokens), ht_feed("targets", targets));
    return 0;
}
