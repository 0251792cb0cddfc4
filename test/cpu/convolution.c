/* A convolution and its gradients are products of matrices: positions in a window stand beside the input channels, and height and width stand together.

RUN: rm -rf %t && %hetucc --emit=c -o %t %s
RUN: FileCheck %s < %t/convolution.kernels.c

Axes have an extent and strides in the result and both operands. The inner dimension is 5 * 3 * 3: strides 720, 240 and 80 are multiples of one another.
CHECK-LABEL: void convolution_correlate_at_{{[0-9]+}}(float *y, const float *x, const float *z)
CHECK: {2, 560, 3600, 0, 0}, {{..}} b
CHECK-NEXT: {7, 80, 0, 45, 0}, {{..}} o
CHECK-NEXT: {8, 10, 10, 0, 0}, {{..}} h
CHECK-NEXT: {10, 1, 1, 0, 0}, {{..}} w
CHECK-NEXT: {5, 0, 720, 9, 0}, {{..}} i
CHECK-NEXT: {3, 0, 240, 3, 0}, {{..}} p
CHECK-NEXT: {3, 0, 80, 1, 0}, {{..}} q
CHECK-LABEL: void convolution_correlate_at_dx_{{[0-9]+}}(
CHECK: {7, 108, 0, 9, 0}, {{..}} i
CHECK-NEXT: {3, 36, 0, 3, 0}, {{..}} p
CHECK-NEXT: {3, 12, 0, 1, 0}, {{..}} q
CHECK-NEXT: {3, 4, 4, 0, 0}, {{..}} h
CHECK-NEXT: {4, 1, 1, 0, 0}, {{..}} w
CHECK-LABEL: void convolution_correlate_at_dz_{{[0-9]+}}(
CHECK: {7, 9, 0, 108, 0}, {{..}} i
CHECK-NEXT: {3, 3, 0, 36, 0}, {{..}} p
CHECK-NEXT: {3, 1, 0, 12, 0}, {{..}} q
*/
#include <hetu/hetu.h>

static ht_tensor model_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(2, 5, 8, 10)), w = ht_param(ht_shape(7, 5, 3, 3), ht_normal(0.1f), "w");
    return ht_mean(ht_conv2d(ht_tanh(ht_conv2d(x, w, HT_NONE, .padding = 1)), ht_param(ht_shape(4, 7, 3, 3), ht_normal(0.1f), "z"), HT_NONE, .stride = 2));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, model_loss, ht_adamw(.lr = 1e-3f));
    ht_close(session);
    return 0;
}
