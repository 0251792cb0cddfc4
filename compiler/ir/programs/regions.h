/* Regions: which elements of a value each device holds.
 *
 *     %7 : f32[8, 64] layout<[0-3]{0:2,1:2}>
 *
 *     value_region(module, %7, 3)              box [4-8) x [32-64)
 *     value_local(module, %7, 3, extent)       extent = {4, 32}
 *     value_local_bytes(module, %7, 3)         512
 *
 * A layout of unequal subgroups may give a device several boxes. Regions are memoized for each pair
 * of layout and type. For a value inside a loop over micro-batches, a device stands for all that it
 * represents (ir/programs/device_programs.h).
 */
#ifndef IR_PROGRAMS_REGIONS_H
#define IR_PROGRAMS_REGIONS_H

#include "ir/module.h"

/* Returns the region of a value on a device; it has no boxes where the device holds nothing. */
const Region *value_region(Module *module, const Value *value, int device);

/* Returns a number that devices with the same boxes of a value share; -1: the device holds nothing
 * of it. */
int value_same_boxes(Module *module, const Value *value, int device);

/* Returns the regions of all devices of the value's layout, in its order, and these devices in
 * *devices. Inside a loop over micro-batches they are representatives. */
const Region *value_regions(Module *module, const Value *value, const int **devices, int *count);

/* Returns the devices of the value's layout and all devices that they represent. */
const int *value_holders(Arena *arena, Module *module, const Value *value, int *count);

/* Writes the local extents of a value that is one box on the device; zeros where the device holds
 * nothing. Returns false where it is several boxes. */
bool value_local(Module *module, const Value *value, int device, int64_t *extent);

/* Returns the bytes of a value on a device. Of results of `collect`, and of inputs that
 * micro-batches read in parts, these are the bytes of all micro-batches. */
int64_t value_local_bytes(Module *module, const Value *value, int device);

/* Returns whether an operator computes the same from any set of elements, in any order: each tensor
 * that is no scalar has all factors of the operator in one order; no factor must be whole, and the
 * kernel needs the position of none. */
bool op_takes_elements(const Op *op);

/* Writes the local extents of a tensor of an operator. A tensor of several boxes counts as one row
 * of all elements, extents 1, ..., 1, n, if the operator takes elements in any order and all its
 * tensors have the same boxes. Returns false where that fails. */
bool op_local(Module *module, const Op *op, const Value *value, int device, int64_t *extent);

#endif
