/* Arguments of calls as numbers in the rules that passes build.
 *
 *     ht_scale(x, 0.5)  with the rule  y[i..] = x[i..] * by    ->    y[i..] = x[i..] * 0.5f
 */
#ifndef PASSES_ARGUMENTS_H
#define PASSES_ARGUMENTS_H

#include "rule/expr.h"
#include "ir/module.h"

/* Returns the value of attribute `attr` of a call as a number that the text of a rule can have. The
 * attribute must not be a shape. */
const Expr *argument_number(Arena *arena, const Op *op, int attr);

#endif
