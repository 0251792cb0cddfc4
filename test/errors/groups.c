// RUN: not %hetucc -c %s -o %t.o 2>&1 | FileCheck %s --strict-whitespace
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 6));
    ht_tensor w = ht_param(ht_shape(3, 6), ht_normal(0.1f), "w"), bias = ht_param(ht_shape(3), ht_zeros(), "bias");
    return ht_mean(ht_linear(x, w, bias));
}

static ht_tensor other(void) { return ht_mean(ht_param(ht_shape(4), ht_zeros(), "v")); }

static ht_tensor no_rule(const ht_update *u) { return ht_sum(u->p); }

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_adamw(.lr = 0.1f), .groups = ht_groups({"*.biass", ht_adamw(.decay = 0)}));
    ht_train(session, loss, ht_adamw(.lr = 0.1f), .groups = ht_groups({"bias", ht_sgd(.lr = 1)}));
    ht_train(session, loss, ht_muon(.lr = 0.1f));
    ht_train(session, other, ((ht_optimizer){.rule = no_rule}));
    return 0;
}

// CHECK: {{.*}}groups.c:19:{{.*}} error: one program has one optimizer that is an operator: ht_adamw_update and ht_sgd_update are two; others are rules
// CHECK: {{.*}}groups.c:18:{{.*}} error: no parameter of loss that is trained belongs to the group "*.biass"
// CHECK: {{.*}}groups.c:7:{{.*}} error: {{.*}}Muon updates matrices
// CHECK: {{.*}}groups.c:11:{{.*}} error: the rule no_rule gives the parameter "v" another shape or type
// CHECK: {{.*}}groups.c:13:{{.*}} note: it is here
