/* Derivatives of expressions, and gradients of rules whose right side is an expression (RULE_BODY).
 *
 *     y[i, j] = x[i, j] * w[j]      the gradient of x: dy[i, j] * w[j]
 *                                   the gradient of w: dy[i, j] * x[i, j], summed over i
 *
 * In a gradient of a rule with n operands, access n is dy, the gradient of the result, and
 * access n + 1 is the result. Terms are summed over the factors that the operand lacks. */
#pragma once

#include "rule/expr.h"

typedef struct Rule Rule;

/* Returns the derivative of an expression with respect to the access of `operand`. Bit i of
 * `integers`: operand i has integer elements. Quotients that the derivative adds are floating-point
 * even for integers. */
const Expr *expr_derivative(Arena *arena, const Expr *expr, int operand, uint64_t integers);

/* The gradient of one operand of a RULE_BODY. */
typedef struct OperandGradient {
    const Rule *rule;
    int operand;
    uint64_t integers; // bit i: operand i has integer elements
    // the result has the body's unrounded value, and replaces the body where this adds no reads
    bool reuse;
} OperandGradient;

/* Returns the summand that one term adds to the gradient. Sets bit f of *repeated if the term is
 * summed over factor f and the summand lacks f: the caller then multiplies by the extent of f. */
const Expr *rule_term_gradient(Arena *arena, const OperandGradient *of, const Expr *term,
                               uint64_t *repeated);

/* Returns the gradient of an operand from all terms, without reuse of the result. */
const Expr *rule_gradient(Arena *arena, const Rule *rule, int operand, uint64_t integers);

/* ---- functions of math.h that rules may call: functions.c ---- */

/* Traits of functions on which their derivatives depend. */
enum {
    SETTLES = 1,      // saturates or becomes linear at a polynomial rate; arguments may grow faster
    SETTLES_FAST = 2, // saturates exponentially: faster than any argument can grow
    SINGULAR = 4,     // has points where its derivative is infinite
    LOGARITHM = 8     // derivative: a constant over the argument of the logarithm
};

/* A function of math.h and its derivatives with respect to its arguments a and b; y is the
 * function's value. The table has the float functions; their double variants are derived. */
typedef struct MathFunction {
    const char *name;
    const char *derivative[2];
    int traits;
    const char *relative; // functions that grow exponentially: derivative / value; NULL: others
} MathFunction;

/* Returns the table's entry for a float or double function (sets `wide` for double); NULL: none. */
const MathFunction *math_function(const char *name, bool *wide);
