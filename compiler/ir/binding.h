/* Bindings: which factors of a rule the dimensions of one call's tensors are.
 *
 *     y[b.., o] = x[b.., i] * w[o, i]        x: f32[8, 16, 64], w: f32[32, 64]
 *
 *     factors     0: b of extent 8   1: b of extent 16   2: i of extent 64   3: o of extent 32
 *     operands    x: 0, 1, 2   w: 3, 2
 *     results     y: 0, 1, 3
 */
#pragma once

#include <stdint.h>

enum { IR_MAX_FACTORS = 32, IR_MAX_OPERANDS = 64 }; // most bound factors and operands of a call

/* A factor of the call. An ellipsis has one bound factor for each dimension that it stands for.
 * Pass factor_dims splits bound factors until each dimension of a tensor is one bound factor. */
typedef struct BoundFactor {
    int factor;     // index into the rule's factors
    int64_t extent; // global: of the whole tensor, not of a device's piece
} BoundFactor;
typedef struct BoundDim {
    int count;          // number of merged factors; 1 after pass factor_dims
    const int *factors; // indices of bound factors, the major one first
    int written; // index of the kernel's dimension that this one is in, perhaps with other ones
} BoundDim;
typedef struct BoundAccess {
    int access;       // index into the rule's operands or results; equal for variadic tensors
    int rank;         // 0, and `dims` is NULL, for an absent operand
    int written_rank; // number of dimensions that the kernel sees; those of extent 1 have no entry
                      // in `dims` after pass factor_dims
    const BoundDim *dims;
} BoundAccess;
typedef struct Binding {
    int factor_count, operand_count, result_count;
    const BoundFactor *factors;
    const BoundAccess *operands, *results;
} Binding;
