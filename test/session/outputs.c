/* Outputs have the values of the step, before the update: parameters, what lies in their storage, what is reduced, and what others could
write over.

RUN: %cc %s -o %t.plain %flags && %t.plain > %t.expected
RUN: FileCheck %s < %t.expected
CHECK: w -0.091 -0.345
CHECK: loss
CHECK-NOT: w -0.091 -0.345
RUN: %hetucc -O1 --strategy=whole %s -o %t.whole -lm && %t.whole | diff %t.expected -
RUN: %hetucc -O1 --strategy=rows %s -o %t.rows -lm && env HETU_CHECK=1 %mpirun 2 %t.rows | diff %t.expected -
RUN: %hetucc -O1 --strategy=wide %s -o %t.wide -lm && env HETU_CHECK=1 %mpirun 3 %t.wide | diff %t.expected -
*/
#include <hetu/hetu.h>

#include <stdio.h>

enum { ROWS = 5, WIDE = 6, IN = 4 };

#pragma hspmd strategy whole
#pragma hspmd   stage devices(0)
#pragma hspmd end strategy

#pragma hspmd strategy rows
#pragma hspmd   split rows:a
#pragma hspmd   zero 1
#pragma hspmd   stage devices(0-1) mesh(a:2)
#pragma hspmd end strategy

#pragma hspmd strategy wide
#pragma hspmd   split wide:a
#pragma hspmd   stage devices(0-2) mesh(a:3 by 3:1:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(ROWS, IN)), w = ht_param(ht_shape(WIDE, IN), ht_uniform(0.5f), "w");
    ht_tensor scale = ht_param(ht_shape(WIDE), ht_ones(), "scale");
#pragma hspmd dims(x: rows, _)
#pragma hspmd dims(w: wide, _)
    ht_tensor y = ht_mul(ht_linear(x, w, HT_NONE), scale);
    ht_output(scale, "scale");
    ht_output(w, "w");
    ht_output(ht_reshape(w, ht_shape(8, 3)), "regrouped");
    ht_output(ht_reshape(w, ht_shape(2, 3, IN)), "split");
    ht_output(ht_transpose(w, 0, 1), "turned");
    ht_output(y, "y");
    ht_output(ht_row_max(y), "peak");
    ht_output(ht_row_max(ht_transpose(y, 0, 1)), "peaks");
    ht_output(ht_sum(y), "sum");
    ht_tensor z = ht_gelu(y);
    return ht_mean(ht_mul(z, z));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int count;
    } outputs[] = {{"scale", WIDE},      {"w", WIDE * IN},      {"regrouped", WIDE * IN},
                   {"split", WIDE * IN}, {"turned", WIDE * IN}, {"y", ROWS * WIDE},
                   {"peak", ROWS},       {"peaks", WIDE},       {"sum", 1}};
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.5f, .momentum = 0.5f));
    float x[ROWS * IN], value[ROWS * WIDE + WIDE * IN];
    for (int i = 0; i < ROWS * IN; i++)
        x[i] = (float)(i * 7 % 13 - 6) / 4;
    for (int step = 0; step < 3; step++) {
        printf("loss %.3f\n", ht_step(program, ht_feed("x", x)));
        for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++) {
            ht_fetch(program, outputs[k].name, value);
            printf("%s", outputs[k].name);
            for (int i = 0; i < outputs[k].count; i++)
                printf(" %.3f", value[i] == 0 ? 0.0 : value[i]);
            puts("");
        }
    }
    return 0;
}
