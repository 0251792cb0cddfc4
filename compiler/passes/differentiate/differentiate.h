/* Declarations that the files of pass differentiate share. differentiate.c walks backward through
 * the operators. gradient_rule.c derives gradients of rules with a body, inline.c copies gradient
 * functions, update.c adds the optimizer, dead_code.c removes operators without readers. */
#pragma once

#include "ir/module.h"

typedef struct Differentiator {
    Module *module;
    bool *needs;      // by value id of the forward section: needs a gradient
    Value **gradient; // by value id: the sum of its gradient so far
    Value **mapped;   // by value id of a gradient function: its copy in the module
    bool *wanted;     // by value id of a gradient function: its copy is needed
    bool *vanishes;   // by value id of a gradient function: it is 0, since a result has no gradient
    // the forward operator whose gradient is built, or `place`: source position of new operators
    const Op *forward;
    Op place;                // source position of operators that belong to no forward operator
    Section section;         // section of new operators
    struct RuleEntry *rules; // cache of derived rules
    const OpDef *sum;
    Value *norm; // square of the norm of all gradients, for gradient clipping; NULL: none
} Differentiator;

/* Appends an operator with the source position of diff->forward. Returns its first result. */
Value *emit_op(Differentiator *diff, const OpDef *def, Value *const *operands, int operand_count,
               const Attr *attrs);

/* Adds a contribution (or NULL) to the gradient of `value` if needed; another shape is an error. */
void add_gradient(Differentiator *diff, Value *value, Value *contribution);

/* Appends the addition of two values and returns the sum. */
Value *emit_sum(Differentiator *diff, Value *a, Value *b);

/* Appends operator `name`, which sets all elements of a tensor to `number`. Returns the tensor. */
Value *emit_fill(Differentiator *diff, const char *name, Type type, double number);

/* Copies diff->forward's gradient function into the module and adds the operands' gradients. */
void inline_gradient(Differentiator *diff);

/* Appends the squared norm of all gradients together and returns it; NULL: there are none. */
Value *gradient_norm(Differentiator *diff);

/* Adds the update section: the gradient norm if needed, and the optimizer's operator for each
 * trained parameter without a rule of its own. Then adds `rules`, the operators of optimizer rules
 * and assignments of the model, with values in the place of placeholders (ir/builtin.h). Operators
 * that need a missing gradient are left out. */
void insert_updates(Differentiator *diff, const Ops *rules);

/* Removes operators on which no loss, output, or updated parameter or state depends. */
void remove_dead_ops(Module *module);
