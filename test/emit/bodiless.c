/* An operator whose rule is an expression needs no body: the program links without one, and runs. One that has a body is left as it is.

RUN: rm -rf %t && mkdir -p %t && %hetucc --emit=c -o %t/c %s && %hetucc -Wall -Werror -o %t/program %s && %t/program | FileCheck --check-prefix=LOSS %s
RUN: FileCheck %s < %t/c/bodiless.main.c
*/
#include <hetu/hetu.h>

#include <stdio.h>

// CHECK-NOT: halve
// CHECK: #pragma weak cube
// CHECK-NOT: halve
// CHECK: #include "{{.*}}bodiless.c"
#pragma hspmd op y[i..] = x[i..] * x[i..] * x[i..]
ht_tensor cube(ht_tensor x);

#pragma hspmd op y[i..] = x[i..] / 2
static inline ht_tensor halve(ht_tensor x)
{
    return ht_scale(x, 0.5f);
}

static ht_tensor loss(void)
{
    return ht_sum(halve(cube(ht_param(ht_shape(4), ht_constant(2), "w"))));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_program *program = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    printf("%g", ht_step(program));
    printf(" then %g\n", ht_step(program)); // LOSS: 16 then 5.488
    return 0;
}
