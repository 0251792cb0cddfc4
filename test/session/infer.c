/* Programs of ht_infer: their steps count for kernels that ask for the number, and layers that share parameters, some alike and then others, read their own.

RUN: %cc %s -o %t.plain %flags && %t.plain > %t.expected
RUN: FileCheck %s < %t.expected
CHECK: step 0 1 2
CHECK-NEXT: y {{-?[0-9.]+}}
RUN: %hetucc -O1 %s -o %t -lm && %t | diff %t.expected -

A target that is no class and is not -100, which is ignored, ends the program.
RUN: not %t.plain -1 2>&1 | FileCheck %s --check-prefix=TARGET
RUN: not %t -1 2>&1 | FileCheck %s --check-prefix=TARGET
RUN: %t -100 | diff %t.expected -
TARGET: target -1 at element 1 is outside the 6 classes
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>

#pragma hspmd strategy one
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

enum { ROWS = 3, WIDE = 6, MATRICES = 4, LAYERS = 5, STEPS = 3 };

void numbered_kernel(const ht_call *call);
void numbered_kernel(const ht_call *call)
{
    const ht_view *x = &call->operand[0];
    for (int64_t i = 0; i < ht_view_count(x, 0, 1); i++)
        ((float *)call->result[0].data)[i] = ((const float *)x->data)[i] + (float)call->step;
}

#pragma hspmd op y[i] = numbered(x[i]) kernel(numbered_kernel) grad(none)
ht_tensor numbered(ht_tensor x);
ht_tensor numbered(ht_tensor x)
{
    ht_tensor y;
    ht_apply(&(ht_application){.kernel = numbered_kernel, .result_count = 1, .operand_count = 1, .result = {{HT_F32, ht_dims_of(x)}}, .operand = &x}, &y);
    return y;
}

/* x + relu(x up) down; which matrices the layers take agrees in the first two, and from the third on does not. */
static ht_tensor model(void)
{
    static const int up[LAYERS] = {0, 0, 1, 2, 3}, left[LAYERS] = {1, 2, 3, 0, 1}, right[LAYERS] = {1, 2, 0, 3, 2};
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, WIDE)), w[MATRICES];
    for (int m = 0; m < MATRICES; m++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", m);
        w[m] = ht_param(ht_shape(WIDE, WIDE), ht_normal(0.5f), name);
    }
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        ht_tensor h = ht_linear(ht_relu(ht_linear(x, w[up[l]], HT_NONE)), w[left[l]], HT_NONE);
        x = ht_add(x, ht_linear(ht_softmax(h), w[right[l]], HT_NONE));
    }
    ht_output(numbered(ht_input("zero", HT_F32, ht_shape(1))), "step");
    ht_output(x, "y");
    return ht_mean(ht_cross_entropy(x, ht_input("target", HT_I32, ht_shape(ROWS))));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_infer(session, model);
    float x[ROWS * WIDE], y[ROWS * WIDE], zero[1] = {0}, step[STEPS];
    int32_t target[ROWS] = {0, argc > 1 ? atoi(argv[1]) : 3, 5};
    for (int i = 0; i < ROWS * WIDE; i++)
        x[i] = (float)(i * 7 % 13 - 6) / 4;
    for (int s = 0; s < STEPS; s++) {
        ht_run(program, ht_feed("x", x), ht_feed("zero", zero), ht_feed("target", target));
        ht_fetch(program, "step", &step[s]);
    }
    ht_fetch(program, "y", y);
    printf("step %g %g %g\ny", step[0], step[1], step[2]);
    for (int i = 0; i < ROWS * WIDE; i++)
        printf(" %.4f", y[i]);
    puts("");
    return 0;
}
