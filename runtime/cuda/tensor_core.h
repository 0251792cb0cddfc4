/* tensor_core.h: tensor core instructions for bf16 (PTX ISA, "Matrix multiply-accumulate
 * instructions" and "cp.async").
 *
 * A fragment is the part of a matrix that one lane holds, in registers of two bf16 each. With
 * row = lane / 4 and pair = lane % 4:
 *
 *     a[4] of A, 16 x 16:  a[0] = A[row][2 pair ..],  a[1] = A[row + 8][2 pair ..],  a[2] and a[3]
 *                                                     the same from column 8 on
 *     b[2] of B, 16 x 8:   b[0] = B[2 pair ..][row],  b[1] = B[2 pair + 8 ..][row]
 *     c[4] of C, 16 x 8:   c[0], c[1] = C[row][2 pair ..],  c[2], c[3] = C[row + 8][2 pair ..], in
 *                                                           f32
 *
 * All lanes of a warp call these functions together, except for the copies. */
#pragma once

#include <hetu/cuda.h>

#ifdef HT_EMULATED
#include <tensor_core_emulated.h>
#else

/* Computes c += a b. */
static __device__ __forceinline__ void tensor_multiply(float (&c)[4], const uint32_t (&a)[4],
                                                       uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, "
                 "%6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/* Loads four 8 x 8 matrices of bf16 from shared memory, with rows of 16 bytes. Lane i gives the
 * address of row i % 8 of matrix i / 8. In to[m], lane l gets columns 2 (l % 4) and 2 (l % 4) + 1
 * of row l / 4 of matrix m. */
static __device__ __forceinline__ void tensor_load(uint32_t (&to)[4], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

/* Loads the matrices transposed: lane l gets rows 2 (l % 4) and 2 (l % 4) + 1 of column l / 4. */
static __device__ __forceinline__ void tensor_load_transposed(uint32_t (&to)[4], const void *row) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(address)
                 : "memory");
}

/* Starts an asynchronous copy of 16 aligned bytes to shared memory; of zeros unless `valid`. */
static __device__ __forceinline__ void copy_begin(void *shared, const void *global, bool valid) {
    uint32_t address = (uint32_t)__cvta_generic_to_shared(shared);
    int bytes = valid ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(global),
                 "r"(bytes)
                 : "memory");
}

/* Closes a group of this thread's copies, for copy_wait. */
static __device__ __forceinline__ void copy_commit(void) {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

/* Waits until at most the `pending` last groups of this thread are in flight. A barrier makes the
 * copies visible to other threads. */
template <int pending> static __device__ __forceinline__ void copy_wait(void) {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

/* Returns 2^x within 2 units in the last place; 0 if the result is subnormal. */
static __device__ __forceinline__ float fast_exp2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
}

/* Returns the same number, but hides its value from the compiler, so that numbers derived from it
 * do not stay in registers for long. */
static __device__ __forceinline__ int at_this_place(int x) {
    asm volatile("" : "+r"(x));
    return x;
}

#endif

/* Packs two floats into a register of two bf16, the first in the low half. */
static __device__ __forceinline__ uint32_t tensor_pack(float low, float high) {
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    uint32_t bits;
    memcpy(&bits, &pair, sizeof bits);
    return bits;
}
