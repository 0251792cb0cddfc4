/* Gradients of rules whose right side is an expression. In them the gradient of the result is an
 * access behind the operands, and the result itself the next one; their terms are summed over the
 * factors that the operand lacks.
 */
#ifndef RULE_GRADIENT_H
#define RULE_GRADIENT_H

#include "rule/rule.h"

/* What flows back to an operand through one term of a RULE_BODY. Where the term is summed over a
 * factor that the gradient lacks, it counts as often as the factor's extent: `repeated` gets a bit
 * for each of these. `integers` has a bit for each operand whose elements are integers; `reuse`:
 * the result is the value of the body with all its digits, and is taken where that needs no more
 * tensors: y for expf(x).
 */
const Expr *rule_term_gradient(Arena *arena, const Rule *rule, const Expr *term, int operand,
                               uint64_t integers, bool reuse, uint64_t *repeated);

/* What flows back to an operand through all terms, the result not reused; 0 where nothing does. */
const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers);

#endif
