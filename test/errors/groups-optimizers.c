// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
// RUN: %cc %s %flags -o %t && not %t 2>&1 | FileCheck %s --check-prefix=PLAIN
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(8, 4), ht_normal(0.1f), "w"), bias = ht_param(ht_shape(8), ht_zeros(), "bias");
    return ht_mean(ht_linear(ht_input("x", HT_F32, ht_shape(2, 4)), w, bias));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_adamw(.lr = 1e-3f), .groups = ht_groups({"bias", ht_sgd(.lr = 1)}));
    return 0;
}

// CHECK: {{.*}}groups-optimizers.c:14:{{.*}} error: one program has one optimizer that is an operator: ht_adamw_update and ht_sgd_update are two; others are rules
// PLAIN: hetu: one program has one optimizer that is an operator: adamw and sgd are two; others are rules
