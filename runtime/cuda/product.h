/* product.h: the parts of ht_product (product.cu). C++ only. */
#pragma once

#include "device/contraction.h"

#include <hetu/product.h>

#include <cublasLt.h>

/* ---- matrix products by cuBLASLt (matmul.cu) ---- */

/* Bytes of a product's scratch; alignment in bytes that some kernels need of bias and aux. */
enum { MATMUL_WORKSPACE = 32 << 20, MATMUL_ALIGNMENT = 16 };

/* A matrix in column-major storage, or a batch of such matrices. `op`: transposed or not. */
typedef struct Matrix {
    ht_dtype dtype;
    cublasOperation_t op;
    int64_t rows, columns, pitch; // as stored; pitch: elements from a column to the next
    int64_t stride;               // elements from a matrix of the batch to the next
} Matrix;

/* A kind of product: d = epilogue(scale * op(a) op(b) + add * d + bias). The bias has an element
 * for each row of d, in d's type. */
typedef struct Matmul {
    Matrix a, b, d;
    int64_t batch;
    bool biased;
    ht_epilogue epilogue;
    bool aux; // also writes d before the activation, stored as d is; only for gelu
    /* Operand ('a', 'b') whose sums over the summed dimension go to the bias's address; 0: none. */
    char sums_of;
} Matmul;

/* Addresses of a product's operands. bias (or the sums' address) and aux may be nullptr. */
typedef struct Operands {
    const void *a, *b;
    void *d;
    const void *bias;
    void *aux;
} Operands;

/* Returns whether cuBLASLt supports a product with its epilogue. Of `at`, only alignment counts. */
bool matmul_possible(const Matmul &m, const Operands &at);

/* Runs the product on the compute stream; `workspace` has MATMUL_WORKSPACE bytes. */
void matmul_run(const Matmul &m, const Operands &at, float scale, float add, void *workspace);

/* ---- copies between storage orders, and contractions of any kind (contract.cu) ---- */

/* The epilogue for each element of a result: y = activation(value + bias), aux = value + bias.
 * Types are f32 or bf16. */
typedef struct Finish {
    void *y, *aux; // aux NULL: no aux
    const void *bias;
    ht_dtype y_dtype, bias_dtype, from_dtype; // from_dtype: type of the values before the epilogue
    ht_epilogue epilogue;
} Finish;

/* Computes y[..] = finish(from[..]). `axes` have strides of y, `from`, bias; no axis is empty. */
void contract_copy(const Finish &finish, const void *from, int rank, const ht_axis *axes);

/* Computes any contraction, a thread or warp per result element. Only summed axes may be empty. */
void contract_plain(const ht_product_call *call);

/* Computes call->sums: sums of an operand (bias gradients). Only summed axes may be empty. */
void contract_sums(const ht_product_call *call);
