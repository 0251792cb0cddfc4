/* Loop nests from bodies: merged factors, broadcasts, sums over rows and columns, long sums in fixed parts, operators of the user with arguments and absent operands.

RUN: rm -rf %t && %hetucc --no-fuse --emit=c -o %t %s
RUN: FileCheck %s < %t/bodies.kernels.c
RUN: %cc -std=gnu17 -O2 -fopenmp -Wall -Wextra -Werror -I%root/include -c %t/bodies.kernels.c -o %t/object.o
*/
#include <hetu/hetu.h>

#pragma hspmd op y[r..] = x[r.., c] * x[r.., c]
ht_tensor row_squares(ht_tensor x);

#pragma hspmd op y[c] = factor * x[r, c] + ?z[c] - 1
ht_tensor column_sums(ht_tensor x, ht_tensor z, float factor);

#pragma hspmd op y[a, b, c] = x[b, a, c]
ht_tensor swap(ht_tensor x);

#pragma hspmd op y[i..] = x[i..] > limit ? x[i..] : size(i) * 2
ht_tensor pick(ht_tensor x, int limit);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(40, 6, 100));
    ht_tensor rows = row_squares(x);
    ht_tensor columns = column_sums(rows, HT_NONE, -0.5f);
    ht_tensor both = column_sums(rows, columns, 2);
    ht_tensor swapped = swap(x);
    ht_tensor picked = pick(swapped, -3);
    ht_tensor wide = ht_input("wide", HT_F32, ht_shape(300, 1000));
    ht_tensor row = ht_input("row", HT_F32, ht_shape(1000));
    ht_tensor total = ht_add(ht_sum(both), ht_sum(picked));
    return ht_add(total, ht_sum(ht_add(wide, row)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, loss);
    return 0;
}

// A sum over the last dimension: a scalar for each row.
// CHECK: x (40, 6, 100) -> y (40, 6) */
// CHECK-NEXT: void bodies_row_squares_{{[0-9]+}}(float *y, const float *x)
// CHECK: #pragma omp parallel for
// CHECK-NEXT: for (long i0 = 0; i0 < 240; i0++) {
// CHECK-NEXT: double sum = 0;
// CHECK-NEXT: #pragma omp simd reduction(+ : sum)
// CHECK-NEXT: for (long k0 = 0; k0 < 100; k0++)
// CHECK-NEXT: sum += x[i0 * 100 + k0] * x[i0 * 100 + k0];
// CHECK-NEXT: y[i0] = (float)sum;

// The absent operand is left out; the constant is added once.
// CHECK: void bodies_column_sums_{{[0-9]+}}(float *y, const float *x)
// CHECK: sum += (-0.5f) * x[{{.*}}];
// CHECK: (float)(sum - 1);
// CHECK: void bodies_column_sums_{{[0-9]+}}(float *y, const float *x, const float *z)
// CHECK: (float)(sum + z[i0] - 1);

// CHECK: void bodies_swap_{{[0-9]+}}(float *y, const float *x)
// CHECK: for (long i0 = 0; i0 < 6; i0++)
// CHECK-NEXT: for (long i1 = 0; i1 < 40; i1++)
// CHECK-NEXT: #pragma omp simd
// CHECK-NEXT: for (long i2 = 0; i2 < 100; i2++)
// CHECK-NEXT: y[i0 * 4000 + i1 * 100 + i2] = x[i0 * 100 + i1 * 600 + i2];

// size(i) is the product of the dimensions that the ellipsis stands for.
// CHECK: void bodies_pick_{{[0-9]+}}(float *y, const float *x)
// CHECK: y[i0] = x[i0] > (-3) ? x[i0] : 24000L * 2;

// A long sum in parts whose borders do not depend on the threads.
// CHECK: x (6, 40, 100) -> y () */
// CHECK: double part[64];
// CHECK-NEXT: #pragma omp parallel for
// CHECK-NEXT: for (int c = 0; c < 64; c++) {
// CHECK-NEXT: double s = 0;
// CHECK-NEXT: #pragma omp simd reduction(+ : s)
// CHECK-NEXT: for (long k0 = 24000L * c / 64; k0 < 24000L * (c + 1) / 64; k0++)
// CHECK: y[0] = (float)sum;

// A row is broadcast.
// CHECK: x (300, 1000), z (1000) -> y (300, 1000) */
// CHECK: y[i0 * 1000 + i1] = x[i0 * 1000 + i1] + z[i1];
