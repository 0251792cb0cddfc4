/* Generated kernels: neighbouring elements at once where sizes and alignment allow it, broadcasts, elements that lie apart, sums by warps, blocks, grids and
columns, names that C++ or the kernels use themselves.

RUN: rm -rf %t && %hetucc --no-fuse --backend=cuda --emit=c -o %t %s
RUN: FileCheck %s < %t/bodies.kernels.cu
RUN: rm -rf %t.again && %hetucc --no-fuse --backend=cuda --emit=c -o %t.again %s && diff -r %t %t.again
*/
#include <hetu/hetu.h>

#pragma hspmd op y[r..] = x[r.., c] * x[r.., c]
ht_tensor row_squares(ht_tensor x);

#pragma hspmd op y[c] = factor * x[r, c] + ?z[c] - 1
ht_tensor column_sums(ht_tensor x, ht_tensor z, float factor);

#pragma hspmd op y[a, b, c] = x[b, a, c]
ht_tensor swap(ht_tensor x);

#pragma hspmd op y[a, b] = x[b, a]
ht_tensor turn(ht_tensor x);

#pragma hspmd op e[i..] = new[i..] > limit ? new[i..] : size(i) * k[i..]
ht_tensor pick(ht_tensor new, ht_tensor k, int limit);

static ht_tensor loss(void)
{
    ht_tensor x = ht_input("x", HT_F32, ht_shape(40, 6, 100));
    ht_tensor rows = row_squares(x);
    ht_tensor columns = column_sums(rows, HT_NONE, -0.5f);
    ht_tensor picked = pick(swap(x), swap(x), -3);
    ht_tensor wide = ht_input("wide", HT_F32, ht_shape(300, 1000));
    ht_tensor row = ht_input("row", HT_F32, ht_shape(1000));
    ht_tensor tall = ht_input("tall", HT_F32, ht_shape(4096, 512));
    ht_tensor total = ht_add(ht_sum(columns), ht_sum(picked));
    total = ht_add(total, ht_sum(turn(wide)));
    total = ht_add(total, ht_sum(column_sums(tall, HT_NONE, 2)));
    total = ht_add(total, ht_sum(row_squares(ht_input("long", HT_F32, ht_shape(3, 70000)))));
    return ht_add(total, ht_sum(ht_add(wide, row)));
}

int main(int argc, char **argv)
{
    ht_session *session = ht_open(&argc, &argv);
    ht_infer(session, loss);
    return 0;
}

// CHECK: #include <hetu/cuda_loops.h>
// CHECK-EMPTY:
// CHECK-NEXT: extern "C" {

// A short row: a warp for each.
// CHECK: x (40, 6, 100) -> y (40, 6) */
// CHECK-NEXT: static __global__ void bodies_row_squares_[[N:[0-9]+]]_device(float *y, const float *x)
// CHECK-NEXT: {
// CHECK-NEXT: const int i0 = blockIdx.x * 8 + threadIdx.y;
// CHECK-NEXT: if (i0 >= 240)
// CHECK-NEXT: return;
// CHECK-NEXT: double sum = 0;
// CHECK-NEXT: for (int k = threadIdx.x; k < 25; k += 32) {
// CHECK-NEXT: const int k0 = k * 4;
// CHECK-NEXT: float x_v[4];
// CHECK-NEXT: ht_load(x_v, x + i0 * 100 + k0);
// CHECK-NEXT: for (int e = 0; e < 4; e++)
// CHECK-NEXT: sum += x_v[e] * x_v[e];
// CHECK-NEXT: }
// CHECK-NEXT: sum = ht_warp_sum(sum);
// CHECK-NEXT: if (threadIdx.x == 0)
// CHECK-NEXT: y[i0] = (float)sum;
// CHECK-NEXT: }
// CHECK-EMPTY:
// CHECK-NEXT: void bodies_row_squares_[[N]](float *y, const float *x)
// CHECK-NEXT: {
// CHECK-NEXT: ht_launch(bodies_row_squares_[[N]]_device, 30, dim3(32, 8), 0, y, x);
// CHECK-NEXT: }

// Columns of which there are few rows: a block adds them up; six of them are no multiple of four.
// CHECK: x (40, 6) -> y (6) */
// CHECK: sum += (-0.5f) * x[i0 + k0 * 6];
// CHECK: y[i0] = (float)(sum - 1);

// Two dimensions change places, the third stays: neighbours are loaded together.
// CHECK: static __global__ void bodies_swap_[[N:[0-9]+]]_device(float *y, const float *x)
// CHECK-NEXT: {
// CHECK-NEXT: for (int i = ht_thread(); i < 6000; i += ht_threads()) {
// CHECK-NEXT: const int i0 = i / 1000, i1 = i / 25 % 40, i2 = i % 25 * 4;
// CHECK-NEXT: float x_v[4];
// CHECK-NEXT: ht_load(x_v, x + i0 * 100 + i1 * 600 + i2);
// CHECK-NEXT: float y_v[4];
// CHECK-NEXT: for (int e = 0; e < 4; e++)
// CHECK-NEXT: y_v[e] = x_v[e];
// CHECK-NEXT: ht_store(y + i0 * 4000 + i1 * 100 + i2, y_v);
// CHECK: ht_launch(bodies_swap_[[N]]_device, ht_blocks(6000, 256), 256, 0, y, x);

// Names of C++ and of the loops get an underscore.
// CHECK: void bodies_pick_{{[0-9]+}}_device(float *e_, const float *new_, const float *k_)
// CHECK: e__v[e] = new__v[e] > (-3) ? new__v[e] : 24000L * k__v[e];

// A sum of all elements: blocks in a column of the grid, the last of which adds up what the others leave.
// CHECK: x (6, 40, 100) -> y () */
// CHECK: for (int k = blockIdx.y * 256 + threadIdx.x; k < 6000; k += 2816) {
// CHECK: if (ht_block_sum(sum))
// CHECK-NEXT: y[0] = (float)sum;
// CHECK: ht_launch({{.*}}, dim3(1, 11), 256, 0, y, x);

// A transpose: stores are together, loads lie apart.
// CHECK: const int i0 = i / 75, i1 = i % 75 * 4;
// CHECK-NEXT: float y_v[4];
// CHECK-NEXT: for (int e = 0; e < 4; e++)
// CHECK-NEXT: y_v[e] = x[i0 + (i1 + e) * 1000];
// CHECK-NEXT: ht_store(y + i0 * 300 + i1, y_v);

// Many rows of columns.
// CHECK: x (4096, 512) -> y (512) */
// CHECK: const int i = blockIdx.x * 32 + threadIdx.x;
// CHECK-NEXT: const int i0 = i * 4;
// CHECK-NEXT: double sum[4] = {0};
// CHECK-NEXT: if (i < 128) {
// CHECK-NEXT: for (int k0 = blockIdx.y * 8 + threadIdx.y; k0 < 4096; k0 += 512) {
// CHECK-NEXT: float x_v[4];
// CHECK-NEXT: ht_load(x_v, x + i0 + k0 * 512);
// CHECK-NEXT: for (int e = 0; e < 4; e++)
// CHECK-NEXT: sum[e] += 2.0f * x_v[e];
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: if (ht_column_sums(sum) && i < 128) {
// CHECK-NEXT: float y_v[4];
// CHECK-NEXT: for (int e = 0; e < 4; e++)
// CHECK-NEXT: y_v[e] = (float)(sum[e] - 1);
// CHECK-NEXT: ht_store(y + i0, y_v);
// CHECK: dim3(4, 64), dim3(32, 8), 0, y, x);

// Few long rows: several blocks for each.
// CHECK: x (3, 70000) -> y (3) */
// CHECK: const int i0 = blockIdx.x;
// CHECK: for (int k = blockIdx.y * 256 + threadIdx.x; k < 17500; k += 8704) {
// CHECK: ht_launch({{.*}}, dim3(3, 34), 256, 0, y, x);

// A row is broadcast.
// CHECK: x (300, 1000), z (1000) -> y (300, 1000) */
// CHECK: const int i0 = i / 250, i1 = i % 250 * 4;
// CHECK: ht_load(z_v, z + i1);
