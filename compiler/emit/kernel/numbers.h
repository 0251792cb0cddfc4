/* Numbers that differ between the devices of a role, which its functions are told: whether the
 * device adds a term, and where its pieces begin. */
#ifndef EMIT_KERNEL_NUMBERS_H
#define EMIT_KERNEL_NUMBERS_H

#include "emit/kernel/local.h"

/* Marks the terms that some device of the role leaves out, since another adds the same to the same
 * partial result. */
void flag_terms(LocalOp *local, RoleWriter *writer);

/* Whether a kernel uses where the pieces of a dimension of its view lie; and whether these may be
 * zigzag, so that it is told of two ranges.
 */
bool written_has_offset(const LocalOp *local, const Tensor *tensor, int written);
bool written_is_zigzag(const Tensor *tensor, int written);

/* The distinct ranges of a dimension that a region has, of which the first two are written. Returns
 * how many. */
int region_ranges(const Region *region, int dim, Range ranges[2]);

/* Where in a device's row the numbers of this operator stand, flags of terms, then where views lie;
 * added when new. -1 when it reads none.
 */
int number_column(RoleWriter *writer, const LocalOp *local);

#endif
