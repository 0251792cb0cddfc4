/* Results of ring steps and the operators that join them (clause `merge`;
 * passes/propagate_layouts/ring_attention.c).
 *
 *     o0 = attention(q, k0, v0); o1 = attention(q, k1, v1); o = merge(o0, o1)
 *
 * A device with no keys in a ring step runs nothing in that step, so its o0 or o1 does not exist.
 * The joining operator cannot see this in the values: the emitter asks op_joined.
 */
#ifndef IR_ANALYSIS_JOINED_RESULTS_H
#define IR_ANALYSIS_JOINED_RESULTS_H

#include "ir/module.h"

typedef enum JoinedHalf { JOINED_BOTH, JOINED_FIRST, JOINED_SECOND } JoinedHalf;

/* Returns which of the two results that an operator joins exist on a device. JOINED_BOTH also
 * stands for operators that join nothing, and for devices that have neither result. */
JoinedHalf op_joined(Module *module, const Op *op, int device);

#endif
