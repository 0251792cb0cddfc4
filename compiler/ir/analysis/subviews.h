/* Subviews: values that share the storage of a larger value.
 *
 *     q = slice(qkv, 1, 0, 64)     qkv: f32[8, 192]; q: f32[8, 64], rows 192 elements apart
 *
 * A slice may lie in its operand, and an operand of a concatenation in the concatenation's result.
 * Pass memory selects such values (passes/memory/alias_views.h) and sets Value.subview. Kernels
 * whose rule has the clause `pitch` read and write such a value in place; the slice or
 * concatenation itself copies nothing. */
#pragma once

#include "ir/module.h"

/* Returns the bytes from the beginning of a value's storage to its first element. */
int64_t value_displacement(Module *module, const Value *value, int device);

/* An operand or a result of an operator. */
typedef struct BoundTensor {
    const Access *access; // the rule's access of the tensor
    const BoundAccess *bound;
    const Value *value;
} BoundTensor;

/* Returns whether a kernel can read or write a tensor in place on a device. Writes to *pitch the
 * distance in elements between the starts of rows (the dimensions after the factor of clause
 * pitch); 0 if the tensor is no subview. */
bool tensor_pitch(Module *module, const Op *op, BoundTensor tensor, int device, int64_t *pitch);

/* Returns whether an operator is a slice or concatenation that subviews relieve of all copying. */
bool op_moves_nothing(const Op *op);

/* Returns the slice of `whole` that is `value` itself or that `value` reshapes; NULL: none. */
const Value *value_made_within(const Value *value, const Value *whole);
