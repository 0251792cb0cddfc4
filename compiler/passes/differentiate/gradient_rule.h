/* The gradient of a body by one of its operands, as a rule that the compiler inserts.
 *
 * For y[b, o] = x[b, i] * w[o, i] the gradient of x is dx[b, i] = dy[b, o] * w[o, i]: dy times the
 * derivative of the body, summed over the factors that x lacks. The rule's text names every
 * dimension by itself (b.. becomes b0, b1), says the extents that its operands do not tell, and has
 * the arguments' values in place.
 */
#ifndef PASSES_DIFFERENTIATE_GRADIENT_RULE_H
#define PASSES_DIFFERENTIATE_GRADIENT_RULE_H

#include "ir/module.h"

enum { GRADIENT_OF_RESULT = -1, THE_RESULT = -2 };

typedef enum GradientKind {
    GRADIENT_ZERO, // the operand does not matter
    GRADIENT_SAME, // dx is dy
    GRADIENT_RULE  // dx is what `def` computes
} GradientKind;

typedef struct GradientRule {
    GradientKind kind;
    const OpDef *def;
    int operand_count;
    const int *operands; // of def: the operand of the forward operator, or GRADIENT_OF_RESULT, or
                         // THE_RESULT
} GradientRule;

/* The element type in which a value's gradient is kept: the value's own; but a copy in bf16 of what
 * is wider has its gradient in f32, as the sums of many small contributions that it is. */
DType gradient_dtype(const Value *value);

/* The gradient of `op`, a RULE_BODY, by its operand `operand`, which is present. */
GradientRule gradient_rule(Module *module, const Op *op, int operand);

#endif
