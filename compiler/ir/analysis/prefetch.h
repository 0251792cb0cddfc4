/* Prefetch of parameters under `zero 3`: the all-gather of a layer's parameters overlaps with the
 * layer before.
 *
 *     h1 = linear(h0, w1)     layer 1; the gather of w2 begins in front of it
 *     w2 = reshard(shard2)    the place where the gather must have ended
 *     h2 = linear(h1, w2)     layer 2
 *
 * The gather's result and its scratch space are in use from the operator in front of which it
 * begins.
 */
#ifndef IR_ANALYSIS_PREFETCH_H
#define IR_ANALYSIS_PREFETCH_H

#include "ir/module.h"

/* Returns the operator in front of which a conversion begins, after pass specialize: the first
 * operator of the layer before; of its own layer, if that layer is the first of its phase; `op`
 * itself, if it is no prefetch. */
const Op *op_prefetch_point(const Module *module, const Op *op);

#endif
