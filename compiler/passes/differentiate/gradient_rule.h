/* Gradient of a body with respect to one operand, as a rule that the compiler inserts.
 *
 *     forward    y[b.., o] = x[b.., i] * w[o, i]
 *     gradient   dx[b0, b1, i] = dy[b0, b1, o] * w[o, i]
 *
 * The gradient is dy times the derivative of the body, summed over the factors that x lacks. The
 * derived rule names every dimension (b.. becomes b0, b1), gives sizes that no operand determines,
 * and has the values of arguments as numbers. */
#pragma once

#include "ir/module.h"

enum { GRADIENT_OF_RESULT = -1, THE_RESULT = -2 };

typedef enum GradientKind {
    GRADIENT_ZERO, // the gradient is 0
    GRADIENT_SAME, // dx is dy
    GRADIENT_RULE  // `def` computes dx
} GradientKind;

typedef struct GradientRule {
    GradientKind kind;
    const OpDef *def;
    int operand_count;
    const int *operands; // by operand of `def`: a forward operand, GRADIENT_OF_RESULT or THE_RESULT
} GradientRule;

/* Returns the element type of a value's gradient: the value's own. A bf16 copy of a wider value has
 * its gradient in f32, because the gradient is a sum of many small contributions. */
DType gradient_dtype(const Value *value);

/* Derives the gradient of `op`, a RULE_BODY, by operand `operand`, which is present. */
GradientRule gradient_rule(Module *module, const Op *op, int operand);
