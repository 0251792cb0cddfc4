/* Gradients of rules whose right side is an expression. */
#ifndef RULE_GRADIENT_H
#define RULE_GRADIENT_H

#include "rule/rule.h"

/* What flows back to one operand of a RULE_BODY, as an expression whose terms are summed over the factors that the operand lacks; 0 where
 * nothing does. The gradient of the result is an access in it, behind the operands. `integers` has a bit for each operand whose elements
 * are integers. */
const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers);

#endif
