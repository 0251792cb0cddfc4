/* Which inputs have a batch of their own, apart from the one that micro-batches cut: the inputs of
 * other tasks. */
#ifndef PASSES_FACTOR_DIMS_BATCHES_H
#define PASSES_FACTOR_DIMS_BATCHES_H

#include "passes/factor_dims/equal_dims.h"

/* Reports each input whose rows go through parameters and never meet the rows that micro-batches
 * cut. The loop over micro-batches cuts one batch alone, so every device would compute all rows of
 * the other. Does nothing for a batch that runs as a whole.
 *
 *     vision = ht_mean(tower(ht_input("v", HT_F32, ht_shape(16, 8))))     the batch, 16 rows
 *     audio = ht_mean(tower(ht_input("a", HT_F32, ht_shape(8, 8))))       8 rows of another task:
 *                                                                         an error
 *     h = ht_add(h, ht_embedding(table, ht_input("place", HT_I32, ht_shape(seq))))    added to rows
 *         of the batch: none
 */
void batches_check(const Module *module, const Classes *classes);

#endif
