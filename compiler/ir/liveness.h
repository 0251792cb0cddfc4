/* Liveness: how long values are needed. */
#ifndef IR_LIVENESS_H
#define IR_LIVENESS_H

#include "ir/ir.h"

/* By value id: the index of the operator that reads the value last, or makes it where none does; the number of operators for outputs and
 * the loss. What is made before the loop over micro-batches and read in it is read to its end; sums are kept over the whole loop, and
 * what another stage reads to its end, too. Of a value whose storage others share, or that is part of a union, the last of all. */
int *last_uses(Arena *arena, const Module *module);

/* The operator from which on an operator's results have their places: what gathers micro-batches has them from the beginning of the loop,
 * a message from that of the part that reads it. */
int first_use(const Module *module, const Op *op);

#endif
