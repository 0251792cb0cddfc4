/* One model trained by two optimizers of rules, and read with its average and without, whose strategy changes; a strategy may cut its rows. Prints losses. */
#include <hetu/hetu.h>
#include <hetu/optimizers.h>

#include <stdio.h>

enum { WIDTH = 6, VOCAB = 9, BATCH = 4, TOP = 8 };
int seq = TOP;
#pragma hspmd shape(seq)
#pragma hspmd padding(targets: -100)

static ht_tensor loss(void)
{
    ht_tensor tokens = ht_input("tokens", HT_I32, ht_shape(BATCH, seq)), targets = ht_input("targets", HT_I32, ht_shape(BATCH, seq));
    ht_tensor table = ht_param(ht_shape(VOCAB, WIDTH), ht_normal(0.5f), "table"), w = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.5f), "w");
#pragma hspmd dims(tokens, targets: batch, seq)
    ht_tensor x = ht_linear(ht_embedding(table, tokens), w, HT_NONE);
    return ht_mean(ht_cross_entropy(ht_linear(x, table, HT_NONE), targets));
}

int main(int argc, char **argv)
{
    static const char *const way[] = {"one", "dp", "kept", "dp", "one", "kept"};
    int32_t tokens[BATCH * TOP], targets[BATCH * TOP];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *one = ht_train(session, loss, ht_averaged(ht_adafactor(.lr = 0.01f), 0.9f)), *other = ht_train(session, loss, ht_muon(.lr = 0.01f));
    ht_program *now = ht_infer(session, loss), *average = ht_infer(session, loss, .averaged = true);
    for (int i = 0; i < BATCH * TOP; i++) {
        tokens[i] = i * 5 % VOCAB;
        targets[i] = i % TOP < (i < TOP ? TOP : 3) ? i * 2 % VOCAB : -100;
    }
    for (int step = 0; step < 12; step++) {
        if (step % 2 == 0)
            ht_switch(step % 4 ? one : other, way[step / 2]);
        ht_program *trained[] = {one, other}, *read[] = {now, average};
        for (int p = 0; p < 2; p++)
            printf("%d %d %.6f\n", step, p, ht_step(trained[p], ht_feed("tokens", tokens), ht_feed("targets", targets)));
        for (int p = 0; p < 2; p++) {
            float value;
            ht_run(read[p], ht_feed("tokens", tokens), ht_feed("targets", targets));
            ht_fetch(read[p], "", &value);
            printf("%d %d %.6f\n", step, 2 + p, value);
        }
    }
    return 0;
}
