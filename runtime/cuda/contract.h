/* contract.h: what ht_product does beside matrix products: copies between storage orders with an
 * epilogue, and contractions of any kind. C++ only.
 */
#ifndef CUDA_CONTRACT_H
#define CUDA_CONTRACT_H

#include "device/contraction.h"

/* What is written for each element of a result: y = activation(value + bias), aux = value + bias.
 * Types are f32 or bf16. */
typedef struct Finish {
    void *y, *aux; // aux NULL: none
    const void *bias;
    ht_dtype y_dtype, bias_dtype, from_dtype; // from: what the values are read from
    ht_epilogue epilogue;
} Finish;

/* y[..] = what finish says of from[..], where `axes` have the strides of y, of `from` as x, and of
 * the bias; no axis is empty. */
void contract_copy(const Finish &finish, const void *from, int rank, const ht_axis *axes);

/* Computes any contraction with one thread or warp per element of the result. Only summed axes may
 * be empty. */
void contract_plain(const ht_product_call *call);

/* Computes the sums of an operand that a call requests (bias gradients). Only summed axes may be
 * empty. */
void contract_sums(const ht_product_call *call);

#endif
