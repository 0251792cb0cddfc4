/* Liveness: the operators between which a value needs storage.
 *
 *     0: h = linear(x, w)        h needs storage from 0 to 2
 *     1: y = gelu(h)             y from 1 to 2
 *     2: z = add(h, y)           z, an output, from 2 to 3, the number of operators
 *
 * The loop over micro-batches repeats its operators, and stages run at the same time, so some
 * values need storage over a whole loop. Pass memory packs arenas by these intervals. */
#pragma once

#include "ir/programs/device_programs.h"

/* Returns, by value id, the index of the operator that reads the value last, or makes it if none
 * reads it; for outputs, the loss and new parameters, the number of operators. Exceptions:
 * - a value made before the loop over micro-batches and read in it lives to the loop's end;
 * - so do sums over micro-batches, collected rows, and values that another stage reads;
 * - a value lives to the last use of values that share its storage and of unions that have it. */
int *last_uses(Arena *arena, const Module *module);

/* Returns the index of the operator from which on the results of `op` need storage on the devices
 * of a role:
 * - sums over micro-batches and collected rows: the loop's first operator;
 * - messages between stages: in a slot, the first operator of the phase that reads the message;
 *   else index 0, since a message may arrive at any time;
 * - async collectives: the operator that makes the operand; the loop's first operator if the stage
 *   has several visits, which end in any order; 0 if the role only receives;
 * - prefetches: op_prefetch_point;
 * - all else: `op` itself. */
int first_use(Module *module, const Role *role, const Op *op);

/* Returns the index of the operator from which on one result needs storage: first_use, except that
 * - a result that is read after the loop, on a stage of several visits, needs storage from the
 *   beginning of the loop, because visits do not run in the order of module->ops;
 * - the result of a concatenation whose operands are subviews of it needs storage from the first of
 *   these operands on.
 * `last` is the result of last_uses. */
int first_use_of(Module *module, const Role *role, const Value *result, const int *last);
