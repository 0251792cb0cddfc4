/* Names of factors: from the dimensions that `dims` names to the atoms of classes (equal_dims.h).
 *
 * A name on a dimension that is one atom names it. `three heads _` on a merged dimension names what
 * the reshape splits it into. A single name on a merged dimension belongs to the factor that the
 * reshape names; on `(g r)` of a rule, and where nothing is named otherwise, to all its atoms: the
 * first is part 0 of the name, the others are parts 1, 2, ..., so that an axis too large for the
 * first goes on to the next.
 */
#ifndef PASSES_FACTOR_DIMS_NAMES_H
#define PASSES_FACTOR_DIMS_NAMES_H

#include "passes/factor_dims/equal_dims.h"

/* The name of every atom (by representative). Two names on one atom are reported as an error. */
const DimName *atom_names(Arena *arena, const Module *module, const Classes *classes);

#endif
