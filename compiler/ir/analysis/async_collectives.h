/* Async collectives: what is exchanged once a step beside computing, a conversion of one tensor or
 * of a bucket of several.
 *
 * All devices begin async collectives in one order: that in which their operands are there on the
 * devices of the first body.
 */
#ifndef IR_ANALYSIS_ASYNC_COLLECTIVES_H
#define IR_ANALYSIS_ASYNC_COLLECTIVES_H

#include "ir/module.h"

typedef struct AsyncCollective {
    const Op *op;         // that of its first tensor
    int count;            // tensors
    const Op *const *ops; // by tensor
    int ready; // the operator that makes the last of the operands, on the devices of the first body
} AsyncCollective;

typedef struct AsyncCollectives {
    int count;
    const AsyncCollective *at;
} AsyncCollectives;

/* async collectives, in the order in which it begins; after pass specialize. What has nothing to do
 * is left out. */
AsyncCollectives module_async_collectives(Arena *arena, const Module *module);

#endif
