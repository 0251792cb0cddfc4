/* Liveness: from which operator on and up to which one a value needs storage. */
#ifndef IR_ANALYSIS_LIVENESS_H
#define IR_ANALYSIS_LIVENESS_H

#include "ir/programs/device_programs.h"

/* By value id: the index of the operator that reads the value last, or makes it where none does;
 * the number of operators for outputs and the loss. What is made before the loop over micro-batches
 * and read in it is read to its end; sums are kept over the whole loop, and what another stage
 * reads to its end, too. Of a value whose storage others share, or that is part of a union, the
 * last of all. */
int *last_uses(Arena *arena, const Module *module);

/* The operator from which on an operator's results have their places on the devices of a role: what
 * gathers micro-batches has them from the beginning of the loop, a message from that of the part
 * that reads it, or in the arena, where it may arrive at any time, from the first operator, and
 * async collectives from where its operand is made; from the beginning of the loop where the stage
 * has several visits, which end in any order, and of all where the role only receives. */
int first_use(Module *module, const Role *role, const Op *op);

/* The same of a result: what is read behind the loop lies there from its beginning where the stage
 * has several visits, since those run in another order than their operators stand in; and a row
 * whose members are made in it, from the first of them on. `last` is that of last_uses. */
int first_use_of(Module *module, const Role *role, const Value *result, const int *last);

#endif
