/* What an optimizer's rule is given and pass differentiate alone knows: operators that stand for it
 * until then. */
#ifndef IR_OPTIMIZER_PLACEHOLDERS_H
#define IR_OPTIMIZER_PLACEHOLDERS_H

#include "ir/module.h"

typedef enum OptimizerPlaceholder {
    PLACEHOLDER_GRADIENT, // of the parameter that is the operand
    PLACEHOLDER_NORM,     // the square of the norm of all gradients together
    PLACEHOLDER_UPDATED,  // the new value of the parameter that is the operand
    PLACEHOLDER_COUNT
} OptimizerPlaceholder;

/* The operator, of a parameter. */
const OpDef *placeholder_def(Module *module, OptimizerPlaceholder given);

#endif
