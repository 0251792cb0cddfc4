/* Kernels from equations: a warp for each row, a block where rows are long, no rows at all; values of a row, absent operands, results that a later loop reads.

RUN: rm -rf %t && %hetucc --no-fuse --backend=cuda --emit=c -o %t %s
RUN: FileCheck %s < %t/rows.kernels.cu
*/
#include <hetu/hetu.h>

typedef struct Center {
    ht_tensor y, mean;
} Center;
#pragma hspmd op y[r.., c], mean[r..] = center(x[r.., c], ?weight[c] = 1, ?shift[r..]) replicate(c) \
    body(sum[r..] = x[r.., c] + ?shift[r..]; \
         mean[r..] = sum[r..] / size(c); \
         y[r.., c] = (x[r.., c] - mean[r..]) * ?weight[c]) grad(none)
Center center(ht_tensor x, ht_tensor weight, ht_tensor shift);

typedef struct Twice {
    ht_tensor y, scaled;
} Twice;
#pragma hspmd op y[r.., c], scaled[r.., c] = twice(x[r.., c]) replicate(c) \
    body(y[r.., c] = x[r.., c] * x[r.., c]; \
         total[r..] = y[r.., c]; \
         scaled[r.., c] = y[r.., c] / total[r..]) grad(none)
Twice twice(ht_tensor x);

typedef struct Both {
    ht_tensor y, z;
} Both;
#pragma hspmd op y[i..], z[i..] = both(a[i..], b[i..]) \
    body(t[i..] = a[i..] + b[i..]; y[i..] = t[i..] * a[i..]; z[i..] = t[i..] > 0 ? t[i..] : 0) grad(none)
Both both(ht_tensor a, ht_tensor b);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(40, 6, 100)), weight = ht_input("weight", HT_F32, ht_shape(100));
    ht_tensor shift = ht_input("shift", HT_F32, ht_shape(40, 6)), wide = ht_input("wide", HT_F32, ht_shape(3, 2000));
    ht_tensor odd = ht_input("odd", HT_F32, ht_shape(5, 7));
    Center plain = center(x, HT_NONE, HT_NONE), full = center(x, weight, shift);
    Twice long_rows = twice(wide);
    Twice longest = twice(ht_input("longest", HT_F32, ht_shape(3, 100000)));
    Both pair = both(odd, odd);
    ht_tensor total = ht_add(ht_sum(plain.y), ht_add(ht_sum(full.y), ht_add(ht_sum(plain.mean), ht_sum(full.mean))));
    total = ht_add(total, ht_add(ht_sum(long_rows.y), ht_sum(long_rows.scaled)));
    total = ht_add(total, ht_add(ht_sum(longest.y), ht_sum(longest.scaled)));
    return ht_add(total, ht_add(ht_sum(pair.y), ht_sum(pair.z)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, loss);
    return 0;
}

// A short row: a warp. What is absent is 1 or left out; sums are added up by all lanes.
// CHECK: x (40, 6, 100) -> y (40, 6, 100), mean (40, 6) */
// CHECK-NEXT: static __global__ void rows_center_0_device(float *y, float *mean, const float *x)
// CHECK-NEXT: {
// CHECK-NEXT: const int i0 = blockIdx.x * 8 + threadIdx.y;
// CHECK-NEXT: if (i0 >= 240)
// CHECK-NEXT: return;
// CHECK-NEXT: float x_h[1][4];
// CHECK-NEXT: double sum_s = 0;
// CHECK-NEXT: #pragma unroll
// CHECK-NEXT: for (int j = 0; j < 1; j++) {
// CHECK-NEXT: const int k = j * 32 + threadIdx.x;
// CHECK-NEXT: if (k >= 25)
// CHECK-NEXT: continue;
// CHECK-NEXT: const int k0 = k * 4;
// CHECK-NEXT: ht_load(x_h[j], x + i0 * 100 + k0);
// CHECK-NEXT: for (int e = 0; e < 4; e++) {
// CHECK-NEXT: sum_s += x_h[j][e];
// CHECK: const float sum_v = (float)ht_warp_sum(sum_s);
// CHECK-NEXT: const float mean_v = sum_v / 100L;
// CHECK: float y_w[4];
// CHECK: const float y_v = x_h[j][e] - mean_v;
// CHECK-NEXT: y_w[e] = y_v;
// CHECK-NEXT: }
// CHECK-NEXT: ht_store(y + i0 * 100 + k0, y_w);
// CHECK-NEXT: }
// CHECK-NEXT: if (threadIdx.x == 0)
// CHECK-NEXT: mean[i0] = mean_v;
// CHECK-NEXT: }
// CHECK: ht_launch(rows_center_0_device, 30, dim3(32, 8), 0, y, mean, x);

// An operand of the row is read once, a term of the row is added once.
// CHECK: rows_center_1_device
// CHECK: const float shift_v = shift[i0];
// CHECK: const float sum_v = (float)ht_warp_sum(sum_s) + shift_v;
// CHECK: const float y_v = (x_h[j][e] - mean_v) * weight_v[e];

// A longer row: a block. What the second loop needs of the first is held.
// CHECK: rows_twice_2_device(float *y, float *scaled, const float *x)
// CHECK: const int i0 = blockIdx.x;
// CHECK-NEXT: float y_h[2][4];
// CHECK: y_h[j][e] = y_v;
// CHECK: ht_store(y + i0 * 2000 + k0, y_h[j]);
// CHECK: const float total_v = (float)ht_row_sum(total_s);
// CHECK: const float scaled_v = y_h[j][e] / total_v;
// CHECK: ht_launch(rows_twice_2_device, 3, 256, 0, y, scaled, x);

// A row that registers do not hold: the second loop reads what the first stored.
// CHECK: x (3, 100000)
// CHECK: for (int k = threadIdx.x; k < 25000; k += 256) {
// CHECK: float y_w[4];
// CHECK: ht_load(y_v, y + i0 * 100000 + k0);
// CHECK: const float scaled_v = y_v[e] / total_v;

// No rows: a thread for each element, values in variables.
// CHECK: rows_both_{{[0-9]+}}_device
// CHECK: for (int i0 = ht_thread(); i0 < 35; i0 += ht_threads()) {
// CHECK-NEXT: const float t_v = a[i0] + b[i0];
// CHECK-NEXT: const float y_v = t_v * a[i0];
// CHECK-NEXT: const float z_v = t_v > 0 ? t_v : 0;
// CHECK-NEXT: y[i0] = y_v;
// CHECK-NEXT: z[i0] = z_v;
