/* Check for inputs with a batch that micro-batches do not cut: inputs of a second task. */
#ifndef PASSES_FACTOR_DIMS_BATCHES_H
#define PASSES_FACTOR_DIMS_BATCHES_H

#include "passes/factor_dims/equal_dims.h"

/* Reports each input whose rows occur in values that depend on parameters, but in no operator with
 * rows of micro-batches. The loop cuts only one batch, so every device would compute all rows of a
 * second batch. Does nothing where the batch is not cut.
 *
 *     vision = ht_mean(tower(ht_input("v", HT_F32, ht_shape(16, 8))))    the batch: 16 rows
 *     audio = ht_mean(tower(ht_input("a", HT_F32, ht_shape(8, 8))))      error: another task
 *     h = ht_add(h, ht_embedding(table, ht_input("place", ...)))         no error: added to rows
 */
void batches_check(const Module *module, const Classes *classes);

#endif
