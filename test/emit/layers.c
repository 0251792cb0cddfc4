/* Layers with equal operators and shapes are one function and a table, forward, backward and update; the text does not grow with their number but for the tables.

RUN: rm -rf %t && %hetucc --emit=c -o %t %s
RUN: FileCheck %s < %t/layers.role0.c
RUN: rm -rf %t.many && %hetucc -DLAYERS=40 --emit=c -o %t.many %s
RUN: FileCheck %s --check-prefix=MANY < %t.many/layers.role0.c
RUN: grep -c 'layers_linear_' %t/layers.role0.c > %t/few && grep -c 'layers_linear_' %t.many/layers.role0.c > %t/many && diff %t/few %t/many
RUN: cd %t.many && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c layers.image.c layers.kernels.c layers.role0.c
*/
#include <hetu/hetu.h>

#ifndef LAYERS
#define LAYERS 5
#endif

static ht_tensor block(ht_tensor x)
{
    ht_tensor up = ht_param(ht_shape(12, 8), ht_normal(0.1f), "up"), down = ht_param(ht_shape(8, 12), ht_normal(0.1f), "down");
    ht_tensor h = ht_relu(ht_linear(x, up, HT_NONE));
    return ht_add(x, ht_linear(h, down, HT_NONE));
}

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(4, 8));
    for (int l = 0; l < LAYERS; l++) {
        ht_scope("h%d", l);
        x = block(x);
    }
    return ht_mean(ht_mul(x, x));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// The last layer's sum is one operator with what follows it.
// CHECK: /* h0 .. h3: 4 times the same */
// CHECK-NEXT: static const int64_t [[TABLE:layers_loss_train_role0_forward_0_buffers]][4][{{[0-9]+}}] = {
// CHECK: static void layers_loss_train_role0_forward_0(ht_worker *r, const int64_t *b)
// CHECK: layers_linear_{{[0-9]+}}(ht_at(r, b[{{[0-9]+}}]), ht_at(r, b[{{[0-9]+}}]), ht_at(r, b[{{[0-9]+}}])); ht_did(r); /* layers.c:20: {{.*}}ht_linear */
// CHECK: for (int i = 0; i < 4; i++)
// CHECK-NEXT: layers_loss_train_role0_forward_0(r, [[TABLE]][i]);
// CHECK: /* backward */
// CHECK: times the same */
// CHECK: /* update */
// CHECK: for (int i = 0; i < {{[0-9]+}}; i++)

// MANY: /* h0 .. h38: 39 times the same */
