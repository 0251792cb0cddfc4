// What a model may do beside the basics: tables of operators, lists, recursion, local optimizers, run-time numbers, one function for training and inference.
// RUN: %hetucc --emit=ir --stop-after=frontend -DTP=2 -DSCALE=0.5f %s | FileCheck %s

#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>

#define P(x) _Pragma(#x)
static int64_t seq = 4;
P(hspmd shape(seq))
P(hspmd op y[i..] = SCALE * x[i..])
ht_tensor mine(ht_tensor x);

#pragma hspmd strategy s
#pragma hspmd pipeline
#pragma hspmd stage devices(0-(TP-1)) mesh(tp:TP)
#pragma hspmd split batch:tp
#pragma hspmd end strategy

typedef struct activation {
    const char *name;
    ht_tensor (*function)(ht_tensor);
} activation;
static const activation activations[] = {{"relu", ht_relu}, {"gelu", ht_gelu}, {"mine", mine}};

static ht_tensor added(const ht_tensor *xs, int n)
{
    return n == 1 ? xs[0] : ht_add(added(xs, n / 2), added(xs + n / 2, n - n / 2));
}

// CHECK: module "model" train
// CHECK: stage devices(0-1) mesh(tp:2)
// CHECK: y[i..] = 0.5f * x[i..]
// CHECK: update ht_sgd_update states 1 clip
// CHECK: param %{{.*}} "w2" init constant 1 frozen : f32[6]
// CHECK: input %{{.*}} "x" : f32[4, 6] {{.*}}@[[#@LINE+10]]:
// CHECK: gradient "ht_concat_gradient"
// CHECK: gradient "ht_dropout_gradient"
// CHECK: ht_dropout_at(%{{[0-9]+}}) {0.1{{[0-9]*}}, 0}
// CHECK: section forward
// CHECK: = mine(%{{[0-9]+}}) {{.*}} "all" dims(batch, (a b))
// CHECK: = ht_concat_at(%{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}) {1} gradient 1
// CHECK: = ht_dropout_at(%{{[0-9]+}}) {0.1{{[0-9]*}}, 0} gradient 2
ht_tensor model(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(seq, 6)), all[5];
    for (int i = 0; i < 5; i++) {
        char name[20];
        snprintf(name, sizeof name, "w%d", i);
        all[i] = ht_mul(x, ht_param(ht_shape(6), ht_ones(), name, .frozen = i == 2));
        for (size_t k = 0; k < sizeof activations / sizeof *activations; k++)
            if (activations[k].name[0] != 'g')
                all[i] = activations[k].function(all[i]);
        P(hspmd dims(all[i]: batch, (a b)))
    }
    x = ht_concat(ht_list(x, all[1], all[4]), -1);
    x = ht_dropout(x, 0.1f);
    ht_output(x, "x");
    return ht_mean(ht_add(x, ht_concat(ht_list(added(all, 5), all[0], all[1]), 1)));
}

// CHECK: module "model" infer
// CHECK: output ""
// CHECK: output "x"
// CHECK-NOT: module
int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    const float rate = argc > 1 ? strtof(argv[1], NULL) : 0.1f;
    ht_optimizer sgd = ht_sgd(.lr = rate, .clip = 2);
    sgd.hyper[1] = rate / 2;
    ht_program *p = argc > 1 ? ht_train(session, model, sgd) : ht_train(session, &model, ht_sgd(.lr = (float)argc, .clip = 1));
    ht_infer(session, model);
    return !p;
}
