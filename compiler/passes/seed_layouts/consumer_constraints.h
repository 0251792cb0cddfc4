/* Layout constraints that consumers put on parameters.
 *
 *     split seq:cp heads:cp
 *     q[seq, heads] = x[seq, embed] * w[heads, embed]
 *
 *     x is cut along seq, so q's operator uses cp for seq, and w must not be cut by cp:
 *     w : [heads, embed]    {dup:cp}, not {heads:cp}
 *
 * The names of a parameter's dimensions alone would give it an axis. If an operator that reads the
 * parameter uses that axis for another factor, the axis does not cut the parameter. The same holds
 * for values that are computed from parameters alone. */
#pragma once

#include "ir/module.h"

typedef struct ConsumerConstraints {
    const uint16_t *unwanted; // by value id: bit a: axis a of the value's mesh may not cut it
    const bool *given;        // by value id: a parameter, or computed from parameters alone
} ConsumerConstraints;

/* Returns the constraints of a module, whose meshes must exist. */
const ConsumerConstraints *wanted_of(Arena *arena, const Module *module);

/* Returns the axes that may not cut an operator on parameters alone, because consumers of its
 * results forbid them; bit a: axis a. Returns 0 for all other operators. */
uint16_t op_unwanted(const ConsumerConstraints *wanted, const Op *op);
