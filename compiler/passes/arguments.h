/* Arguments of calls in the rules that passes make. */
#ifndef PASSES_ARGUMENTS_H
#define PASSES_ARGUMENTS_H

#include "rule/expr.h"
#include "ir/module.h"

/* The value of argument `attr` (into the attributes) of a call, as a number that a rule's text can
 * have; not a shape. */
const Expr *argument_number(Arena *arena, const Op *op, int attr);

#endif
