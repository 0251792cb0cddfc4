/* Remarks tell the bytes of a micro-batch from those of a step.

RUN: %hetucc -Rcomm -c %s -o %t.o 2>&1 | FileCheck %s
CHECK: remark: all-reduce of y: 96 bytes received by each micro-batch, 384 in all, for
CHECK: 4 times            384 bytes received
CHECK: in all 384 bytes received
*/
#include <hetu/hetu.h>

#pragma hspmd strategy two
#pragma hspmd   split inner:tp
#pragma hspmd   pipeline microbatches(4)
#pragma hspmd     stage devices(0-1) mesh(tp:2)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(16, 6));
    ht_tensor w = ht_param(ht_shape(6, 3), ht_normal(0.1f), "w");
#pragma hspmd dims(w: inner, _)
    ht_tensor y = ht_output(ht_matmul(x, w), "y");
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    static float x[16 * 6];
    ht_session *session = ht_open(&argc, &argv);
    ht_program *train = ht_train(session, loss, ht_sgd(.lr = 0.1f));
    ht_step(train, ht_feed("x", x));
    ht_close(session);
    return 0;
}
