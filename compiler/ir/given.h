/* What an optimizer's rule is given and pass differentiate alone knows: operators that stand for it until then. */
#ifndef IR_GIVEN_H
#define IR_GIVEN_H

#include "ir/ir.h"

typedef enum Given {
    GIVEN_GRADIENT, // of the parameter that is the operand
    GIVEN_NORM,     // the square of the norm of all gradients together
    GIVEN_UPDATED,  // the new value of the parameter that is the operand
    GIVEN_COUNT
} Given;

/* The operator, of a parameter. */
const OpDef *given_def(Module *module, Given given);

#endif
