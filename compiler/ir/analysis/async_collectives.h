/* Async collectives: conversions that run once a step, while the device computes. Each converts one
 * tensor, or a bucket of gradients.
 *
 *     dw1 = linear_dw(...)         backward
 *     g1 = reshard(dw1) begins     all-reduce of dw1, while backward goes on
 *     w1 = adam(w1, g1)            update: waits for g1
 *
 * All devices begin the collectives in the same order: the order in which the devices of the first
 * pipeline template compute the operands. So NCCL cannot deadlock (cuda/nccl.cu).
 *
 * A prefetch does the same for parameters under `zero 3`: the all-gather of a layer's parameters
 * overlaps with the layer before.
 *
 *     h1 = linear(h0, w1)     layer 1; the gather of w2 begins before it
 *     w2 = reshard(shard2)    the place where the gather must have ended
 *     h2 = linear(h1, w2)     layer 2
 *
 * The gather's result and scratch space are in use from the operator where it begins. */
#pragma once

#include "ir/module.h"

/* Returns whether an operator is an async collective: once a step it converts a value from before
 * the update, such as a gradient. An async collective begins when the device has made its operand,
 * overlaps with the rest of backward, and ends before the update. On one stage under `zero` no
 * operator is async without Target.overlap, because the result takes the storage of the operand. */
bool op_is_async(const Module *module, const Op *op);

typedef struct AsyncCollective {
    const Op *op;         // the conversion of the first tensor
    int count;            // number of tensors
    const Op *const *ops; // the conversion of each tensor
    int ready; // index of the last operator in the first pipeline template that makes an operand
} AsyncCollective;

typedef struct AsyncCollectives {
    int count;
    const AsyncCollective *at;
} AsyncCollectives;

/* Returns the async collectives of a module after pass specialize, in the order in which they
 * begin. Conversions that move no bytes are left out. */
AsyncCollectives module_async_collectives(Arena *arena, const Module *module);

/* Returns the operator before which a conversion begins, after pass specialize. This is the first
 * operator of the preceding layer, or of the same layer if no layer precedes it in the phase, or
 * later if the operand is made later. For a conversion that is not a prefetch, returns `op`. */
const Op *op_prefetch_point(const Module *module, const Op *op);
