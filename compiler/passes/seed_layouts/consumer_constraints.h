/* What readers of parameters want of them.
 *
 * A parameter, and what is made of parameters alone, is cut as its readers want it: where an axis
 * could cut a dimension that has a name, but cuts another factor of an operator that reads it, it
 * stays whole along that axis. So `split seq:cp heads:cp` leaves the weights of query, key and
 * value whole, whose readers are cut along the sequence.
 */
#ifndef PASSES_SEED_LAYOUTS_CONSUMER_CONSTRAINTS_H
#define PASSES_SEED_LAYOUTS_CONSUMER_CONSTRAINTS_H

#include "ir/module.h"

typedef struct ConsumerConstraints {
    const uint16_t *unwanted; // by value id: a bit an axis of the mesh on which the value lies
    const bool *given;        // by value id: parameters, and what is made of them alone
} ConsumerConstraints;

/* Of a module with a mesh. */
const ConsumerConstraints *wanted_of(Arena *arena, const Module *module);

/* The axes that may not cut an operator on parameters alone, since readers of its results do not
 * want it; 0 for others. */
uint16_t op_unwanted(const ConsumerConstraints *wanted, const Op *op);

#endif
