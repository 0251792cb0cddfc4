/* matmul.h: matrix products by cuBLASLt. C++ only. */
#ifndef CUDA_MATMUL_H
#define CUDA_MATMUL_H

#include <hetu/product.h>

#include <cublasLt.h>

/* Bytes of scratch memory that a product gets; and of which the addresses of bias and aux must be
 * multiples: some of cuBLASLt's kernels take that for granted. */
enum { MATMUL_WORKSPACE = 32 << 20, MATMUL_ALIGNMENT = 16 };

/* A matrix in column-major storage, one of a batch; op turns it into the operand. */
typedef struct Matrix {
    ht_dtype dtype;
    cublasOperation_t op;
    int64_t rows, columns, pitch; // as stored; pitch: elements from a column to the next
    int64_t stride;               // elements from one of the batch to the next
} Matrix;

/* Products of one kind: d = epilogue(scale * op(a) op(b) + add * d + bias), the bias along d's
 * columns in d's type. */
typedef struct Matmul {
    Matrix a, b, d;
    int64_t batch;
    bool biased;
    ht_epilogue epilogue;
    bool aux;     // d before the activation is written, too, stored as d is; gelu alone
    char sums_of; // 'a' or 'b': the sums of that operand over what the product adds up are written
                  // where the bias would be; 0: none
} Matmul;

/* Where the operands of a product are; bias (or where the sums go) and aux may be nullptr where it
 * lacks them. */
typedef struct Operands {
    const void *a, *b;
    void *d;
    const void *bias;
    void *aux;
} Operands;

/* Whether cuBLASLt takes the matrices; where it does not with an epilogue it may without. The
 * addresses matter for their alignment alone.
 */
bool matmul_possible(const Matmul &m, const Operands &at);

/* Runs it on the stream that computes. */
void matmul_run(const Matmul &m, const Operands &at, float scale, float add, void *workspace);

#endif
