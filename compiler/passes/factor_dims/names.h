/* Names of factors: from the names of dimensions in the source to atoms of classes (equal_dims.h).
 *
 *     qkv : [b, 2304]   named [batch, (three heads _)]    atoms 3, 12, 64: "three", "heads", none
 *     q   : [b, 768]    named [batch, heads]              atoms 12, 64: "heads", "heads" part 1
 *
 * A name on a dimension of one atom names that atom. `(three heads _)` names the factors into which
 * a reshape splits the dimension. A single name on a merged dimension names the factor that has
 * this name in the reshape. If no factor has it, or if the dimension is `(g r)` of a rule, the name
 * is for all atoms: part 0, 1, 2, ... of the name. An axis that is too large for part 0 then
 * continues with part 1.
 */
#ifndef PASSES_FACTOR_DIMS_NAMES_H
#define PASSES_FACTOR_DIMS_NAMES_H

#include "passes/factor_dims/equal_dims.h"

/* Returns the names of atoms, by representative atom. Reports an error if an atom has two names. */
const DimName *atom_names(Arena *arena, const Module *module, const Classes *classes);

#endif
