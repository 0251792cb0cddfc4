/* contract.h: the parts of ht_product that are no matrix product: copies between storage orders
 * with an epilogue, and contractions of any kind. C++ only. */
#ifndef CUDA_CONTRACT_H
#define CUDA_CONTRACT_H

#include "device/contraction.h"

/* The epilogue for each element of a result: y = activation(value + bias), aux = value + bias.
 * Types are f32 or bf16. */
typedef struct Finish {
    void *y, *aux; // aux NULL: no aux
    const void *bias;
    ht_dtype y_dtype, bias_dtype, from_dtype; // from_dtype: type of the values before the epilogue
    ht_epilogue epilogue;
} Finish;

/* Computes y[..] = finish(from[..]). `axes` have the strides of y, of `from` (as x) and of the
 * bias. No axis is empty. */
void contract_copy(const Finish &finish, const void *from, int rank, const ht_axis *axes);

/* Computes any contraction, a thread or warp per result element. Only summed axes may be empty. */
void contract_plain(const ht_product_call *call);

/* Computes the sums of an operand that a call requests (bias gradients). Only summed axes may be
 * empty. */
void contract_sums(const ht_product_call *call);

#endif
