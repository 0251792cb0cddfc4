/* A constant of the command line that is the number of a line on which a call of assert ends, in this file or another one, is no __LINE__ of that call.

RUN: %hetucc --emit=ir -DSIZE=18 %s -o - | FileCheck %s
RUN: sh -c 'for n in $(seq 2 3 130); do %hetucc --emit=ir -DSIZE=$n %s -o %t || exit 1; done'
CHECK: param {{.*}} "w" init zeros : f32[18]
*/
#include <assert.h>
#include <hetu/hetu.h>

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(SIZE)), w = ht_param(ht_shape(SIZE), ht_zeros(), "w");
    int n = SIZE;
    assert(n > 0 &&
           n < 1000 &&

           n != 500 &&
           "a size that is not 18, the number of this line");
    return ht_mean(ht_mul(x, w));
}

int main(int argc, char **argv)
{
    static float x[SIZE];
    ht_session *session = ht_open(&argc, &argv);
    ht_step(ht_train(session, loss, ht_adamw(.lr = 1e-3f)), ht_feed("x", x));
    return 0;
}
