/* Where values lie in storage that is larger than they are: a slice in what it is taken from, and
 * members of a row in the row.
 *
 * Such a value has Value.subview, and its elements are as far apart as those of the whole. Pass
 * memory decides it (passes/memory/alias_views.h); kernels whose rule says so (clause pitch) read
 * and write it there, and the operator that would move it does nothing.
 */
#ifndef IR_ANALYSIS_SUBVIEWS_H
#define IR_ANALYSIS_SUBVIEWS_H

#include "ir/programs/device_programs.h"

/* How far apart a value's elements are in its storage along each dimension, and which element of
 * the storage is its first. */
void value_strides(Module *module, const Value *value, int device, int64_t *stride, int64_t *first);

/* Bytes from the beginning of a value's storage to its first element. */
int64_t value_displacement(Module *module, const Value *value, int device);

/* Whether a kernel can take a tensor as it lies on a device. *pitch: how far apart its rows are,
 * which end behind the factor of clause pitch; 0 where all lies in a row. */
bool tensor_pitch(Module *module, const Op *op, const Access *access, const BoundAccess *bound,
                  const Value *value, int device, int64_t *pitch);

/* Whether an operator has nothing to move: its operand or its result lies within the other. */
bool op_moves_nothing(const Op *op);

/* The value that is made in a place within `whole`, of which a view in another shape may be the
 * operand `value`; NULL: there is none. */
const Value *value_made_within(const Value *value, const Value *whole);

#endif
