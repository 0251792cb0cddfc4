/* Predicts the next byte of a text from the eight bytes before it.
 *
 *     cc model.c data.c -o model -lhetu -lm                             one device
 *     hetucc --strategy=four.strategy model.c data.c -o model -lm      four devices
 *     ./model [TEXT]
 */
#include "data.h"

#include <hetu/hetu.h>
#include <stdio.h>

enum { BATCH = 64, CONTEXT = 8, BYTES = 256, WIDTH = 32, HIDDEN = 256, STEPS = 300 };

static ht_tensor loss(void) {
    // Inputs are what each step is fed; parameters are what is trained.
    ht_tensor context = ht_input("context", HT_I32, ht_shape(BATCH, CONTEXT));
    ht_tensor next = ht_input("next", HT_I32, ht_shape(BATCH));
    ht_tensor table = ht_param(ht_shape(BYTES, WIDTH), ht_normal(0.1f), "table");
    ht_tensor up = ht_param(ht_shape(HIDDEN, CONTEXT * WIDTH), ht_normal(0.05f), "up");
    ht_tensor down = ht_param(ht_shape(BYTES, HIDDEN), ht_normal(0.05f), "down");

    // Names of dimensions; a strategy splits them over devices, and cc ignores them.
#pragma hspmd dims(context : batch, _)
#pragma hspmd dims(next : batch)
#pragma hspmd dims(up : hidden, _)

    ht_tensor x = ht_embedding(table, context);                      // (BATCH, CONTEXT, WIDTH)
    ht_tensor row = ht_reshape(x, ht_shape(BATCH, CONTEXT * WIDTH)); // (BATCH, CONTEXT * WIDTH)
    ht_tensor hidden = ht_gelu(ht_linear(row, up, HT_NONE));         // (BATCH, HIDDEN)
    ht_tensor logits = ht_linear(hidden, down, HT_NONE);             // (BATCH, BYTES)
    return ht_mean(ht_cross_entropy(logits, next));
}

int main(int argc, char **argv) {
    static int32_t context[BATCH * CONTEXT], next[BATCH];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_adamw(.lr = 3e-3f));
    Text text = text_read(argc > 1 ? argv[1] : "model.c", CONTEXT);
    for (int step = 0; step < STEPS; step++) {
        text_batch(&text, BATCH, CONTEXT, context, next);
        float value = ht_step(program, ht_feed("context", context), ht_feed("next", next));
        if (step % 50 == 0 || step == STEPS - 1) printf("step %3d loss %.4f\n", step, value);
    }
    return 0;
}
