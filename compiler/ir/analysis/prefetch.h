/* Gathers ahead: what a part takes from pieces that were there before it, parameters under `zero
 * 3`, is gathered a layer before it is read, beside what that layer computes.
 *
 * Such a conversion stands in its place, where it must have ended, and begins in front of an
 * earlier operator of its part. Its result and its scratch space are in use from there on.
 */
#ifndef IR_ANALYSIS_PREFETCH_H
#define IR_ANALYSIS_PREFETCH_H

#include "ir/module.h"

/* The operator in front of which a conversion begins: the first one of the layer before its own, or
 * of its own layer where its part begins with that; `op` itself where it does not begin ahead.
 * After pass specialize. */
const Op *op_prefetch_point(const Module *module, const Op *op);

#endif
