/* Operators that run once a piece, and those that join their results (clause merge;
 * passes/propagate_layouts/ring.c).
 *
 * A device whose piece is empty has run nothing, and there is no value that the joining operator
 * leaves out by itself: it has to be told.
 */
#ifndef IR_ANALYSIS_JOINED_RESULTS_H
#define IR_ANALYSIS_JOINED_RESULTS_H

#include "ir/module.h"

typedef enum JoinedHalf { JOINED_BOTH, JOINED_FIRST, JOINED_SECOND } JoinedHalf;

/* What an operator has on a device of the two sets of results that it joins: JOINED_BOTH of one
 * that joins none, or where there is nothing of either. */
JoinedHalf op_joined(Module *module, const Op *op, int device);

#endif
