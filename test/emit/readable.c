/* The whole of what is emitted for a small model on one device: names, shapes and lines of the source, no numbers without a meaning.

RUN: rm -rf %t && %hetucc --emit=c -o %t %s
RUN: ls %t | FileCheck %s --check-prefix=FILES
RUN: FileCheck %s --check-prefix=ROLE < %t/readable.role0.c
RUN: FileCheck %s --check-prefix=KERNELS < %t/readable.kernels.c
RUN: FileCheck %s --check-prefix=IMAGE < %t/readable.image.c
RUN: FileCheck %s --check-prefix=MAIN < %t/readable.main.c
RUN: rm -rf %t.again && %hetucc --emit=c -o %t.again %s && diff -r %t %t.again
RUN: cd %t && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c readable.image.c readable.kernels.c readable.notes.c readable.role0.c
FILES: MANIFEST
FILES-NEXT: Makefile
FILES-NEXT: include
FILES-NEXT: readable.image.c
FILES-NEXT: readable.kernels.c
FILES-NEXT: readable.main.c
FILES-NEXT: readable.notes.c
FILES-NEXT: readable.role0.c
FILES-NEXT: runtime
FILES-NEXT: source
*/
#include <hetu/hetu.h>

int batch = 6;
#pragma hspmd shape(batch)

static ht_tensor model_loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(batch, 10));
    ht_tensor w = ht_param(ht_shape(7, 10), ht_normal(0.1f), "w");
    ht_tensor bias = ht_param(ht_shape(7), ht_zeros(), "bias");
    ht_tensor hidden = ht_gelu(ht_linear(x, w, bias));
    return ht_mean(hidden);
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, model_loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// ROLE: /* readable.c, one device: role 0. Written by hetucc. */
// ROLE: #include <hetu/rt.h>
// ROLE: model_loss, role 0: device 0
// ROLE: void readable_model_loss_train_role0_forward(ht_worker *r)
// ROLE-NEXT: {
// ROLE-NEXT: readable_linear_gelu_0(ht_arena(r, {{[0-9]+}}), ht_arena(r, {{[0-9]+}}), ht_slot(r, 4), ht_slot(r, 0), ht_slot(r, 1)); ht_did(r); /* readable.c:32: hidden = linear_gelu */
// ROLE-NEXT: readable_mean_1({{.*}}); ht_did(r); /* readable.c:33: ht_mean */
// ROLE-NEXT: }
// ROLE: void readable_model_loss_train_role0_backward(ht_worker *r)
// ROLE: readable_mean_dx_gelu_backward_{{[0-9]+}}({{.*}}); ht_did(r); /* readable.c:33+32: mean_dx_gelu_backward */
// ROLE: readable_linear_dw_{{[0-9]+}}
// ROLE: void readable_model_loss_train_role0_update(ht_worker *r)
// ROLE: readable_sgd_update_{{[0-9]+}}(r, ht_slot(r, 0), ht_slot(r, 2), ht_slot(r, 0), {{.*}}, ht_slot(r, 2), "readable.c:30"); ht_did(r); /* ht_sgd_update */

// KERNELS: /* y[i0, i1], y_1[i0, i1] = linear_gelu(x[i0, i2], w[i1, i2], bias[i1])
// KERNELS-NEXT: *     body(y[i0, i1] = x[i0, i2] * w[i1, i2] + bias[i1];
// KERNELS-NEXT: *          y_1[i0, i1] = 0.5f * y[i0, i1] * {{.*}} replicate(i2) epilogue(HT_GELU)
// KERNELS-NEXT: * x (6, 10), w (7, 10), bias (7) -> y (6, 7), y_1 (6, 7) */
// KERNELS-NEXT: void readable_linear_gelu_0(float *y, float *y_1, const float *x, const float *w, const float *bias)
// KERNELS: {6, 7, 10, 0, 0}, /* i0 */
// KERNELS-NEXT: {7, 1, 0, 10, 1}, /* i1 */
// KERNELS-NEXT: {10, 0, 1, 1, 0}, /* i2 */
// KERNELS: const ht_product_call call = {.y = y_1, .y_dtype = HT_F32, .x = x, .w = w, .dtype = HT_F32,
// KERNELS-NEXT: .bias = bias, .bias_dtype = HT_F32, .scale = 1, .epilogue = HT_GELU, .aux = y, .rank = 3, .axes = axes};
// KERNELS-NEXT: ht_product(&call);
// KERNELS: void readable_mean_1(float *y, const float *x)
// KERNELS: sum += x[k0] / 42L;
// KERNELS-NEXT: y[0] = (float)sum;
// KERNELS: /* dx[i0, i1] = mean_dx_gelu_backward(dy[], x[i0, i1])
// KERNELS-NEXT: *     body(dx_1[i0, i1] = dy[] / (size(i0) * size(i1));
// KERNELS-NEXT: *          dx[i0, i1] = dx_1[i0, i1] * (0.5f * (1 + tanhf({{.*}}
// KERNELS-NEXT: * dy (), x (6, 7) -> dx (6, 7) */
// KERNELS-NEXT: void readable_mean_dx_gelu_backward_3(float *dx, const float *dy, const float *x)
// KERNELS-NEXT: {
// KERNELS-NEXT: #pragma omp simd
// KERNELS-NEXT: for (long i0 = 0; i0 < 42; i0++) {
// KERNELS-NEXT: const float dx_1_v = dy[0] / (6L * 7L);
// KERNELS-NEXT: const float dx_v = dx_1_v * (0.5f * (1 + {{(ht_)?}}tanhf({{.*}}
// KERNELS-NEXT: dx[i0] = dx_v;
// KERNELS: const ht_view result[] = {
// KERNELS: {.data = p1, .dtype = HT_F32, .rank = 2, .extent = {7, 10}, .global = {7, 10}},
// KERNELS: .hyper = r->hyper
// KERNELS: ht_run_kernel(r, ht_{{.*}}, &call, where);

// IMAGE: {"w", "(7, 10)", &pieces_0, 2 /* normal */, 0.1
// IMAGE: {"bias", "(7)", &pieces_1, 0 /* zeros */, 0
// IMAGE: {"x", HT_F32, &pieces_{{[0-9]+}}, "readable.c:29", NULL},
// IMAGE: static const uint32_t read_readable_model_loss_train_0[] = {6u};
// IMAGE: {"batch", "readable.c:29", -1, 1, HT_SIGNED, 4, read_readable_model_loss_train_0},
// IMAGE: .model = "model_loss",
// IMAGE: .device_count = 1,

// MAIN: #include "{{.*}}readable.c"
// MAIN: static const volatile void *const readable_model_loss_train_reads[] = {
// MAIN-NEXT: &batch,
// MAIN-NEXT: };
// MAIN: __attribute__((constructor))
// MAIN: ht_register(&readable_model_loss_train_image, model_loss, readable_model_loss_train_updates, readable_model_loss_train_reads);
// MAIN: batch = 6;
