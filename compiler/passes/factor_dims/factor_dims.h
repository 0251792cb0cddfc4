/* The parts of pass factor_dims that use its analysis (equal_dims.h). */
#pragma once

#include "passes/factor_dims/equal_dims.h"

/* ---- names of factors (names.c) ---- */

/* Names of factors: from the names of dimensions in the source to atoms of classes (equal_dims.h).
 *
 *     qkv : [b, 2304]   named [batch, (three heads _)]    atoms 3, 12, 64: "three", "heads", none
 *     q   : [b, 768]    named [batch, heads]              atoms 12, 64: "heads", "heads" part 1
 *
 * A name on a dimension of one atom names that atom. `(three heads _)` names the factors into which
 * a reshape splits the dimension. A single name on a merged dimension names the factor that has
 * this name in the reshape. If no factor has it, or if the dimension is `(g r)` of a rule, the name
 * is for all atoms: part 0, 1, 2, ... of the name. An axis that is too large for part 0 then
 * continues with part 1. */

/* Returns the names of atoms, by representative atom. Reports an error if an atom has two names. */
const DimName *atom_names(Arena *arena, const Module *module, const Classes *classes);

/* ---- layouts in the source (user_layouts.c) ---- */

/* Returns the layout that the source writes for a value, for its new dimensions; NULL after an
 * error. `source` is the value's type in the source; `origin` gives for each new dimension the
 * source's dimension that it is part of. */
const UserLayout *factor_written(Module *module, const Value *value, Type source,
                                 const int8_t *origin);

/* ---- batches (batches.c) ---- */

/* Reports each input that is a second batch: its rows occur in values that depend on parameters,
 * but not in operators with rows of micro-batches. The loop cuts only one batch, so every device
 * would compute all rows of another. Does nothing where the batch is not cut.
 *
 *     vision = ht_mean(tower(ht_input("v", HT_F32, ht_shape(16, 8))))    the batch: 16 rows
 *     audio = ht_mean(tower(ht_input("a", HT_F32, ht_shape(8, 8))))      error: another task
 *     h = ht_add(h, ht_embedding(table, ht_input("place", ...)))         no error: added to rows
 */
void batches_check(const Module *module, const Classes *classes);
