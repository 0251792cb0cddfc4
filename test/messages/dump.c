/* A dump has files for each parameter and each of its states, whatever they are called, and is there when it is whole.

RUN: rm -rf %t* && %hetucc %s -o %t.program && env HETU_DUMP=%t.dump %t.program && env LC_ALL=C ls %t.dump/step0/0 | FileCheck %s --check-prefix=FILES
FILES: q%252Fw%0.bin
FILES-NEXT: q%252Fw%0.boxes
FILES-NEXT: q%252Fw.bin
FILES-NEXT: q%252Fw.boxes
FILES-NEXT: q%2Fw%0.bin
FILES-NEXT: q%2Fw%0.boxes
FILES-NEXT: q%2Fw.bin
FILES-NEXT: q%2Fw.boxes
FILES-NEXT: q_w%0.bin
FILES-NEXT: q_w%0.boxes
FILES-NEXT: q_w.bin
FILES-NEXT: q_w.boxes
RUN: not cmp %t.dump/step0/0/q_w.bin %t.dump/step0/0/q%%2Fw.bin
RUN: env HETU_DUMP=%t.dump %t.program && ls -A %t.dump/step0 | FileCheck %s --check-prefix=AGAIN
AGAIN: 0
AGAIN-NOT: {{.}}

RUN: rm -rf %t.dump && mkdir -p %t.dump/step0/0.part/q_w.bin && not env HETU_DUMP=%t.dump %t.program 2>&1 | FileCheck %s --check-prefix=FAILED
FAILED: cannot make the folder {{.*}}step0/0.part: File exists
RUN: not ls %t.dump/step0/0
*/
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor a = ht_param(ht_shape(4), ht_constant(1), "q/w"), b = ht_param(ht_shape(4), ht_constant(2), "q_w");
    return ht_mean(ht_mul(ht_mul(a, b), ht_param(ht_shape(4), ht_constant(3), "q%2Fw")));
}

int main(int argc, char **argv)
{
    ht_step(ht_train(ht_open(&argc, &argv), loss, ht_sgd(.lr = 0.1f)));
    return 0;
}
