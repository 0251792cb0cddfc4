/* matmul.h: matrix products by cuBLASLt. C++ only. */
#ifndef CUDA_MATMUL_H
#define CUDA_MATMUL_H

#include <hetu/product.h>

#include <cublasLt.h>

/* Bytes of scratch memory that a product gets. */
enum { MATMUL_WORKSPACE = 32 << 20 };

/* A matrix in column-major storage, one of a batch; op turns it into the operand. */
typedef struct Matrix {
    ht_dtype dtype;
    cublasOperation_t op;
    int64_t rows, columns, pitch; // as stored; pitch: elements from a column to the next
    int64_t stride;               // elements from one of the batch to the next
} Matrix;

/* Products of one kind: d = epilogue(scale * op(a) op(b) + add * d + bias), the bias along d's columns in d's type. */
typedef struct Matmul {
    Matrix a, b, d;
    int64_t batch;
    bool biased;
    ht_epilogue epilogue;
    bool aux; // d before the activation is written, too, stored as d is; gelu alone
} Matmul;

/* Whether cuBLASLt takes the matrices; where it does not with an epilogue it may without. The addresses matter for their alignment alone.
 */
bool matmul_possible(const Matmul &m, const void *a, const void *b, const void *d);

/* Runs it on the stream that computes; bias and aux may be nullptr where m lacks them. */
void matmul_run(const Matmul &m, const void *a, const void *b, void *d, const void *bias, void *aux, float scale, float add,
                void *workspace);

#endif
