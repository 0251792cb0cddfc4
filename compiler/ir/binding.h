/* Bindings: how the rule of an operator fits the tensors of one call. */
#ifndef IR_BINDING_H
#define IR_BINDING_H

#include "ir/type.h"

enum { IR_MAX_FACTORS = 32, IR_MAX_OPERANDS = 64 }; // of a call

/* How the factors of a rule fell onto the dimensions of one call. An ellipsis gives one bound
 * factor a dimension; pass factor_dims (passes/factor_dims/factor_dims.c) splits bound factors,
 * after which every dimension of every tensor is exactly one of them. */
typedef struct BoundFactor {
    int factor;     // index into the rule's factors
    int64_t extent; // global
} BoundFactor;
typedef struct BoundDim {
    int count;          // 1 after pass factor_dims; the number of merged factors before
    const int *factors; // indices of bound factors, the first major
    int written; // which written dimension this one belongs to, counted over the expanded access:
                 // what a kernel sees as one dimension
} BoundDim;
typedef struct BoundAccess {
    int access;       // index into the rule's operands or results (several share a variadic one)
    int rank;         // 0 with dims NULL for an absent operand
    int written_rank; // dimensions that a kernel sees; one that no `written` names has extent 1
                      // (pass factor_dims drops dimensions of extent 1)
    const BoundDim *dims;
} BoundAccess;
typedef struct Binding {
    int factor_count, operand_count, result_count;
    const BoundFactor *factors;
    const BoundAccess *operands, *results;
} Binding;

#endif
