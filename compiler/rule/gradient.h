/* Derivatives of expressions, and gradients of rules whose right side is an expression (RULE_BODY).
 *
 *     y[i, j] = x[i, j] * w[j]      the gradient of x: dy[i, j] * w[j]
 *                                   the gradient of w: dy[i, j] * x[i, j], summed over i
 *
 * In a gradient with n operands, access n is dy, the gradient of the result, and access n + 1 is
 * the result. Terms are summed over the factors that the operand lacks.
 */
#ifndef RULE_GRADIENT_H
#define RULE_GRADIENT_H

#include "rule/expr.h"

typedef struct Rule Rule;

/* Returns the derivative of an expression with respect to the access of `operand`. Bit i of
 * `integers`: operand i has integer elements. Quotients that the derivative adds are floating-point
 * even then. */
const Expr *expr_derivative(Arena *arena, const Expr *expr, int operand, uint64_t integers);

/* The gradient of one operand of a RULE_BODY. */
typedef struct OperandGradient {
    const Rule *rule;
    int operand;
    uint64_t integers; // bit i: operand i has integer elements
    bool reuse;        // the result may stand for the body (y for expf(x)) where that reads no more
                       // tensors: it has the body's value without rounding
} OperandGradient;

/* Returns what one term adds to the gradient. Bit f of `repeated`: the term is summed over factor f
 * but the gradient lacks f, so the caller multiplies by the extent of f. */
const Expr *rule_term_gradient(Arena *arena, const OperandGradient *of, const Expr *term,
                               uint64_t *repeated);

/* Returns the gradient from all terms, without reuse of the result; 0 where there is none. */
const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers);

#endif
