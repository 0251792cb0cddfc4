/* Kernels call the functions of <hetu/vector_math.h>, which are vectorised, forward and backward.

RUN: rm -rf %t && %hetucc --emit=c -o %t %s
RUN: FileCheck %s < %t/functions.kernels.c
RUN: %cc -std=gnu17 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=off -I%root/include -S -o %t/kernels.s %t/functions.kernels.c
RUN: FileCheck %s --check-prefix=CALLS --allow-empty < %t/kernels.s
CALLS-NOT: {{call|bl|jmp|b}}{{q?[[:space:]]+(erff|expf|expm1f|logf|log1pf|tanhf)([^a-z0-9_]|$)}}
*/
#include <hetu/hetu.h>

static ht_tensor model_loss(void)
{
    ht_tensor w = ht_param(ht_shape(8, 10), ht_normal(0.1f), "w");
    // CHECK-DAG: ht_erff(
    // CHECK-DAG: ht_expf(-
    ht_tensor y = ht_gelu_erf(w);
    // CHECK-DAG: ht_log1pf(
    y = ht_softplus(y, 1, 20);
    // CHECK-DAG: ht_expm1f(
    y = ht_elu(y, 1);
    // CHECK-DAG: ht_logf(
    // CHECK-DAG: ht_tanhf(
    return ht_mean(ht_tanh(ht_log(y)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, model_loss, ht_adamw(.lr = 1e-3f));
    ht_close(session);
    return 0;
}
