/* Built-in operators: the compiler makes them itself; no header declares them.
 *
 *     %9 = reshard(%8)             a conversion
 *     %11 = part(%2)               the rows of %2 that one micro-batch has
 *     %31 = accumulate(%30)        the sum of %30 over the micro-batches so far
 *     %40 = union(%38, %39)        a tensor whose parts %38 and %39 lie on two stages
 *     %41 = collect(%12)           the rows of %12 of all micro-batches
 */
#pragma once

typedef struct OpDef OpDef; // rule/rule.h
typedef struct Module Module;

/* The built-in operators of a module; all but `reshard` are NULL until a pass makes them. */
typedef struct BuiltinDefs {
    const OpDef *reshard;     // converts its operand to the layout of its result
    const OpDef *accumulate;  // made by pass microbatch; NULL: the batch runs as a whole
    const OpDef *local_part;  // made by pass microbatch, inserted by pass stage, too: the rows of
                              // a micro-batch, or the elements of a stage
    const OpDef *stage_union; // made by pass stage: each operand lies on the devices of its stage
    const OpDef *collect;     // made by pass microbatch
} BuiltinDefs;

/* Operators that stand for operands of an optimizer's rule until pass differentiate makes these
 * operands. A placeholder reads the parameter. */
typedef enum OptimizerPlaceholder {
    PLACEHOLDER_GRADIENT, // the parameter's gradient
    PLACEHOLDER_NORM,     // the square of the norm of all gradients together
    PLACEHOLDER_UPDATED,  // the parameter's new value
    PLACEHOLDER_COUNT
} OptimizerPlaceholder;

/* Returns the definition of a placeholder in the module's library. */
const OpDef *placeholder_def(Module *module, OptimizerPlaceholder placeholder);
