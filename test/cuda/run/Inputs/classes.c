/* A classifier whose loss has all that ht_cross_entropy_loss can: weights of classes, smoothing, rows that are ignored, and the square of the mass. Prints losses and sums of parameters. */
#include <hetu/hetu.h>
#include <hetu/losses.h>

#include <stdio.h>

enum { BATCH = 4, SEQ = 12, EMBED = 16, CLASSES = 129 };

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, SEQ, EMBED)), target = ht_input("target", HT_I32, ht_shape(BATCH, SEQ));
    ht_tensor up = ht_param(ht_shape(EMBED, EMBED), ht_normal(0.3f), "up"), head = ht_param(ht_shape(CLASSES, EMBED), ht_normal(0.3f), "head");
    ht_tensor bias = ht_param(ht_shape(CLASSES), ht_normal(0.1f), "bias"), rates = ht_input("rates", HT_F32, ht_shape(CLASSES));
#pragma hspmd dims(x: batch, seq, embed)
#pragma hspmd dims(target: batch, seq)
#pragma hspmd dims(head: vocab, embed)
#pragma hspmd dims(bias: vocab)
    ht_tensor logits = ht_linear(ht_gelu(ht_linear(x, up, HT_NONE)), head, bias);
    return ht_cross_entropy_loss(logits, target, .weight = rates, .label_smoothing = 0.1f, .ignore_index = 7, .z_loss = 0.01f);
}

int main(int argc, char **argv)
{
    static float x[BATCH * SEQ * EMBED], rates[CLASSES];
    static int32_t target[BATCH * SEQ];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.5f));
    for (int i = 0; i < BATCH * SEQ * EMBED; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 50;
    for (int i = 0; i < BATCH * SEQ; i++)
        target[i] = i * 7 % CLASSES;
    for (int i = 0; i < CLASSES; i++)
        rates[i] = 0.5f + (float)(i % 3) / 2;
    for (int step = 0; step < 8; step++)
        printf("%.6f\n", ht_step(program, ht_feed("x", x), ht_feed("target", target), ht_feed("rates", rates)));
    ht_close(session);
    return 0;
}
