/* A recurrent model of more steps than a concatenation has operands, written as the ordinary loop: one rank, four ranks and the one-device library agree.

RUN: %hetucc -o %t.bin %s && %t.bin > %t.out && %cc %s %flags -o %t.cc && %t.cc >> %t.out
RUN: echo 'split batch:dp hidden:tp' > %t.strategy && echo 'stage devices(0-3) mesh(dp:2, tp:2)' >> %t.strategy
RUN: %hetucc --strategy=%t.strategy -o %t.bin4 %s && %mpirun 4 %t.bin4 >> %t.out
RUN: FileCheck %s < %t.out

CHECK: loss [[LOSS:-?[0-9.]+]]
CHECK-NEXT: loss [[LOSS]]
CHECK-NEXT: loss [[LOSS]]
*/
#include <hetu/hetu.h>
#include <stdio.h>

enum { BATCH = 4, STEPS = 300, WIDTH = 6, INPUTS = 3 };

static ht_tensor model_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(BATCH, STEPS, INPUTS)), all[STEPS];
#pragma hspmd dims(x : batch)
    ht_tensor wx = ht_param(ht_shape(WIDTH, INPUTS), ht_normal(0.5f), "wx"), wh = ht_param(ht_shape(WIDTH, WIDTH), ht_normal(0.3f), "wh");
    ht_tensor b = ht_param(ht_shape(WIDTH), ht_normal(0.1f), "b"), h = ht_full(ht_shape(BATCH, WIDTH), 0, HT_F32);
#pragma hspmd dims(wx, wh, b : hidden)
    for (int t = 0; t < STEPS; t++) {
        ht_tensor now = ht_reshape(ht_slice(ht_tanh(x), 1, t, 1), ht_shape(BATCH, INPUTS));
        all[t] = h = ht_tanh(ht_add(ht_linear(now, wx, b), ht_linear(h, wh, HT_NONE)));
    }
    ht_tensor y = ht_stack((ht_tensors){STEPS, all}, 1);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float x[BATCH * STEPS * INPUTS];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *model = ht_train(session, model_loss, ht_adamw(.lr = 1e-2f));
    for (int i = 0; i < BATCH * STEPS * INPUTS; i++)
        x[i] = (float)(i % 17) / 8 - 1;
    float loss = 0;
    for (int step = 0; step < 4; step++)
        loss = ht_step(model, ht_feed("x", x));
    printf("loss %.4f\n", loss);
    ht_close(session);
    return 0;
}
