/* Values of an optimizer that are known at run time only: words of the command line, what pointers lead to, elements at such an index. What is
written through such a pointer is refused.

RUN: %cc %s -o %t.plain %flags && %t.plain 0.01 3 > %t.expected
RUN: %t.plain 0.02 3 | not cmp -s %t.expected - && %t.plain 0.01 2 | not cmp -s %t.expected -
RUN: %hetucc -O1 %s -o %t.one -lm && %t.one 0.01 3 | diff %t.expected - && %t.one 0.02 3 | not cmp -s %t.expected -
RUN: not %hetucc -DWRITTEN -c %s -o %t.o 2>&1 | FileCheck %s
CHECK: run_time_arguments.c:{{[0-9]+}}:{{[0-9]+}}: error: a value of run time is constant
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <stdlib.h>

#ifndef WRITTEN
#define WRITTEN_FIRST(word)
#else
#define WRITTEN_FIRST(word) *(word) = '0',
#endif

typedef struct Chosen {
    float decays[4];
} Chosen;

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(4, 6), ht_normal(0.1f), "w");
    return ht_mean(ht_mul(w, w));
}

int main(int argc, char **argv)
{
    Chosen chosen = {{0.1f, 0.2f, 0.3f, 0.4f}}, *given = argc > 2 ? &chosen : NULL;
    ht_session *session = ht_open(&argc, &argv);
    float betas[] = {0.8f, 0.9f}, *beta = betas + (argc > 1);
    ht_program *program =
        ht_train(session, loss,
                 ht_adamw(.lr = (WRITTEN_FIRST(argv[1]) atof(argv[1])), .beta1 = *beta,
                          .decay = given->decays[atoi(argv[2])], .eps = betas[argc - 3]));
    for (int step = 0; step < 3; step++)
        printf("%.6f\n", ht_step(program));
    return 0;
}
