/* A convolution and its gradients are an operator each, and no windows are stored. A 1 x 1 kernel with stride 2 skips elements of the image.

RUN: rm -rf %t && %hetucc --emit=c -o %t %s
RUN: FileCheck %s < %t/convolution.kernels.c
RUN: FileCheck --check-prefix=NONE %s < %t/convolution.kernels.c
RUN: %hetucc -o %t.bin %s && %t.bin > %t.out && env HETU_PRODUCTS=openblas %t.bin >> %t.out
RUN: FileCheck --check-prefix=LOSS %s < %t.out

CHECK-DAG: ht_convolution_kernel
CHECK-DAG: ht_convolution_images_kernel
CHECK-DAG: ht_convolution_weights_kernel
NONE-NOT: ht_concat_kernel
LOSS: loss [[LOSS:-?[0-9.]+]]
LOSS-NEXT: loss [[LOSS]]
*/
#include <hetu/hetu.h>
#include <stdio.h>

static ht_tensor model_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(2, 5, 8, 10)), w = ht_param(ht_shape(7, 5, 3, 3), ht_normal(0.1f), "w");
    ht_tensor hidden = ht_tanh(ht_conv2d(ht_tanh(ht_conv2d(x, w, HT_NONE, .padding = 1)), ht_param(ht_shape(6, 7, 1, 1), ht_normal(0.1f), "one"), HT_NONE, .stride = 2));
    return ht_mean(ht_conv2d(hidden, ht_param(ht_shape(4, 6, 3, 3), ht_normal(0.1f), "z"), HT_NONE));
}

int main(int argc, char **argv)
{
    static float x[2 * 5 * 8 * 10];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *model = ht_train(session, model_loss, ht_adamw(.lr = 1e-2f));
    for (int i = 0; i < 800; i++)
        x[i] = (float)(i % 17) / 8 - 1;
    float loss = 0;
    for (int step = 0; step < 3; step++)
        loss = ht_step(model, ht_feed("x", x));
    printf("loss %.4f\n", loss);
    ht_close(session);
    return 0;
}
