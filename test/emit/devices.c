/* Programs for several devices: conversions, numbers that differ between the devices of a role, roles for uneven pieces, empty pieces.

RUN: rm -rf %t.tp && %hetucc --strategy=tp --emit=c -o %t.tp %s
RUN: FileCheck %s --check-prefix=TP < %t.tp/devices.role0.c
RUN: FileCheck %s --check-prefix=TPKERNEL < %t.tp/devices.kernels.c
RUN: FileCheck %s --check-prefix=TPIMAGE < %t.tp/devices.image.c
RUN: not ls %t.tp/devices.role1.c
RUN: rm -rf %t.uneven && %hetucc --strategy=uneven --emit=c -o %t.uneven %s
RUN: FileCheck %s --check-prefix=UNEVEN < %t.uneven/devices.image.c
RUN: FileCheck %s --check-prefix=UNEVENROLE < %t.uneven/devices.role1.c
RUN: rm -rf %t.empty && %hetucc --strategy=empty --emit=c -o %t.empty %s
RUN: FileCheck %s --check-prefix=EMPTY < %t.empty/devices.role0.c
RUN: cd %t.tp && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c devices.image.c devices.kernels.c devices.role0.c
RUN: cd %t.uneven && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c devices.image.c devices.kernels.c devices.role0.c devices.role1.c
RUN: cd %t.empty && %cc -std=gnu17 -fopenmp -Wall -Wextra -Werror -I%root/include -c devices.image.c devices.kernels.c devices.role0.c devices.role1.c
*/
#include <hetu/hetu.h>

#pragma hspmd strategy tp
#pragma hspmd   split ffn:tp
#pragma hspmd   stage devices(0-3) mesh(tp:4)
#pragma hspmd end strategy

#pragma hspmd strategy uneven
#pragma hspmd   split ffn:tp
#pragma hspmd   stage devices(0-2) mesh(tp:3)
#pragma hspmd end strategy

#pragma hspmd strategy empty
#pragma hspmd   split rows:dp
#pragma hspmd   stage devices(0-7) mesh(dp:8)
#pragma hspmd end strategy

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(6, 10));
    ht_tensor up = ht_param(ht_shape(16, 10), ht_normal(0.1f), "up"), down = ht_param(ht_shape(10, 16), ht_normal(0.1f), "down");
    ht_tensor bias = ht_param(ht_shape(10), ht_zeros(), "bias");
#pragma hspmd dims(x: rows, embed)
#pragma hspmd dims(up: ffn, embed)
    ht_tensor hidden = ht_relu(ht_linear(x, up, HT_NONE));
    ht_tensor y = ht_linear(hidden, down, bias);
    return ht_mean(ht_mul(y, y));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_train(session, loss, ht_sgd(.lr = 0.1f));
    return 0;
}

// The bias is added by one device; the sum is reduced; all four devices share the program.
// TP: role 0: devices 0, 1, 2, 3
// TP: devices_linear_[[N:[0-9]+]]({{.*}}, r->piece + [[P:[0-9]+]]); ht_did(r); /* devices.c:42: y = ht_linear */
// TP-NEXT: ht_convert(r, devices_loss_train_plan[{{[0-9]+}}], {{.*}}, NULL, "devices.c:{{[0-9]+}}"); ht_did(r); /* y */
// TPKERNEL: /* y[b.., o..] = x[b.., i] * w[o.., i] + ?bias[o..]
// TPKERNEL: x (6, 4), w (10, 4), bias (10) -> y (6, 10) */
// TPKERNEL: .bias = at[0] ? bias : NULL, .bias_dtype = HT_F32, .scale = 1, .rank = 3, .axes = axes};
// TPKERNEL-NEXT: ht_product(&call);
// TPIMAGE: static const ht_run runs_1[] = {{[{][{]}}0, 4, 0, 1}};
// TPIMAGE: /* (16, 10) [0-3]{0:4} */
// TPIMAGE: static const int64_t box_0[] = { // box, then lo, hi, step of each dimension
// TPIMAGE-NEXT: 0, 0, 4, 4, 0, 10, 0,
// TPIMAGE-NEXT: };
// TPIMAGE-NEXT: static const ht_pieces pieces_0 = {2, 1, 1, extent_0, runs_1, NULL, box_0, NULL};
// TPIMAGE: static const int64_t piece_devices_loss_train_0[] = {1{{.*}}};
// TPIMAGE: static const int64_t piece_devices_loss_train_1[] = {0{{.*}}};
// TPIMAGE: static const int piece_of_devices_loss_train[] = {0, 1,
// TPIMAGE: static const int role_of_devices_loss_train[] = {0, 0, 0, 0};
// TPIMAGE: .strategy = "tp",
// TPIMAGE: .device_count = 4,

// 16 in three parts: 5, 5 and 6.
// UNEVEN: static const int role_of_devices_loss_train[] = {0, 0, 1};
// UNEVENROLE: role 1: device 2

// 6 rows on 8 devices: where there are none, nothing is called; the gradient of a sum over them is zero.
// EMPTY: role 0: devices 0, 4
// EMPTY: void devices_loss_train_role0_forward(ht_worker *r)
// EMPTY-NOT: devices_linear_0(
// EMPTY: /* backward */
// EMPTY: devices_linear_dw_
