/* Calls that put any number of tensors into a row (clause `row`), in groups that a call can take.
 *
 *     concat(t0, ..., t63)     64 tensors: more than a call may have (IR_MAX_FACTORS)
 *
 *     u0 = concat(t0, ..., t15)   ...   u3 = concat(t48, ..., t63)   y = concat(u0, u1, u2, u3)
 */
#pragma once

#include "ir/module.h"

typedef Array(Op *) Joins;

/* Makes the operators of a call, and appends them to `joins`; the last one gives the call's
 * results. Makes one operator unless the rule has a clause `row` and the tensors are too many for a
 * call. Returns false after an error, which is reported. */
bool ir_join(Module *module, const OpCall *call, Position at, Joins *joins);
