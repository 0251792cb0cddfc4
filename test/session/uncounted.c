/* main answers its own options behind ht_open, on any number of ranks: these are counted where the session is first called. Its exit status is the program's.

RUN: %hetucc -O1 %s -o %t.program -lm
RUN: %t.program --help 2>&1 | FileCheck %s --check-prefix=HELP --implicit-check-not=hetu:
RUN: env HETU_RANKS=external %t.program --help 2>&1 | FileCheck %s --check-prefix=HELP --implicit-check-not=hetu:
RUN: %mpirun 3 %t.program --help 2>&1 | FileCheck %s --check-prefix=HELP --implicit-check-not=hetu:
RUN: heturun -n 3 %t.program --help 2>&1 | FileCheck %s --check-prefix=HELP --implicit-check-not=hetu
HELP: {{^}}usage of uncounted{{$}}
HELP-NOT: usage
RUN: not env HETU_RANKS=external %t.program --wrong 2>&1 | FileCheck %s --check-prefix=WRONG --implicit-check-not=hetu:
RUN: not heturun -n 3 %t.program --wrong 2>&1 | FileCheck %s --check-prefix=WRONG --implicit-check-not=hetu:
WRONG: {{^}}--wrong is no option{{$}}
RUN: not env HETU_RANKS=external %t.program 2>&1 | FileCheck %s --check-prefix=COUNTED
RUN: not heturun -n 3 %t.program 2>&1 | FileCheck %s --check-prefix=COUNTED
COUNTED: hetu: {{.*}}uncounted.c was compiled for 2 devices (strategy two), but {{[13]}} rank
COUNTED: heturun -n 2
*/
#include <hetu/hetu.h>

#include <stdio.h>
#include <string.h>

#pragma hspmd strategy two
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-1) mesh(dp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor w = ht_param(ht_shape(4, 6), ht_normal(0.1f), "w");
#pragma hspmd dims(w: rows, _)
    return ht_mean(ht_mul(w, w));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    if (argc > 1 && !strcmp(argv[1], "--help")) {
        printf("usage of uncounted\n");
        return 0;
    }
    if (argc > 1) {
        fprintf(stderr, "%s is no option\n", argv[1]);
        return 3;
    }
    ht_step(ht_train(session, loss, ht_sgd(.lr = 1)));
    return 0;
}
