/* Regions: which elements of a value each device holds.
 *
 *     %7 : f32[8, 64] layout<[0-3]{0:2,1:2}>
 *
 *     value_region(module, %7, 3)              box [4, 8) x [32, 64)
 *     value_local(module, %7, 3, extent)       extent = {4, 32}
 *     value_local_bytes(module, %7, 3)         512
 *
 * A layout of unequal subgroups may give a device several boxes. Regions are memoized for each pair
 * of layout and type. For a value that an operator of a stage makes, a representative device stands
 * for all devices that it represents (ir/programs/device_programs.h). */
#pragma once

#include "ir/module.h"

/* Returns the region of a value on a device; it has no boxes where the device holds nothing. */
const Region *value_region(Module *module, const Value *value, int device);

/* Returns a number, equal for devices with the same boxes of a value; -1: not in the layout. */
int value_same_boxes(Module *module, const Value *value, int device);

/* Returns the regions of all devices of the value's layout, in its order. Writes the devices to
 * *devices and their number to *count. For a value of a stage the devices are representatives. */
const Region *value_regions(Module *module, const Value *value, const int **devices, int *count);

/* Returns the *count devices of a value's layout; on a stage, all devices that these represent. */
const int *value_holders(Arena *arena, Module *module, const Value *value, int *count);

/* Writes to extent[] a value's local extents if it is one box on the device; zeros if the device
 * holds nothing. Returns false if the value is several boxes there. */
bool value_local(Module *module, const Value *value, int device, int64_t *extent);

/* Returns the bytes of a value on a device. Counts all micro-batches for results of `collect`, and
 * for inputs that micro-batches read in parts. */
int64_t value_local_bytes(Module *module, const Value *value, int device);

/* Returns whether an operator may run on any set of elements, in any order. True if each tensor,
 * scalars aside, has all factors of the operator in the same order, and no factor has the clause
 * `replicate` or `offset` or is contracted without a reduction. False for views. */
bool op_takes_elements(const Op *op);

/* Writes to extent[] a tensor's local extents in an operator. A tensor of several boxes is one row
 * of its n elements, extents 1, ..., 1, n. Returns false for several boxes if the operator needs an
 * order of elements (op_takes_elements), or if its tensors have different boxes. */
bool op_local(Module *module, const Op *op, const Value *value, int device, int64_t *extent);
