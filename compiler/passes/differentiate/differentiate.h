/* What the files of pass differentiate share. */
#ifndef PASSES_DIFFERENTIATE_DIFFERENTIATE_H
#define PASSES_DIFFERENTIATE_DIFFERENTIATE_H

#include "ir/module.h"

typedef struct Differentiator {
    Module *module;
    bool *needs;      // by value id of the forward section: a gradient is wanted
    Value **gradient; // by value id: what has come together so far
    int value_count;  // values of the forward section and of the gradient functions
    Value **mapped;   // by value id of a gradient function: its copy in the module
    bool *wanted;     // by value id of a gradient function: the copy is wanted
    bool *vanishes;   // by value id of a gradient function: it is zero, since nothing flows back
                      // through a result
    // the operator whose gradient is built, whose place new ones take; or `place`
    const Op *forward;
    Op place;                // of what is built for no operator
    Section section;         // of new operators
    struct RuleEntry *rules; // derived rules that are known
    const OpDef *sum;
    Value *norm; // the square of the norm of all gradients together, once it is asked for; NULL
                 // where there is none
} Differentiator;

/* Whether a gradient flows through the operator at all. */
bool op_differentiable(const Module *module, const Op *op);

/* Appends an operator to the module and gives it its place; its first result. A failure to bind is
 * a bug. */
Value *emit_op(Differentiator *diff, const OpDef *def, Value *const *operands, int operand_count,
               const Attr *attrs);

/* Adds a contribution to the gradient of `value`; nothing happens where none is wanted. */
void add_gradient(Differentiator *diff, Value *value, Value *contribution);

/* The sum of two values. */
Value *emit_sum(Differentiator *diff, Value *a, Value *b);

/* A tensor of one number. */
Value *emit_fill(Differentiator *diff, const char *name, Type type, double number);

/* Copies the gradient function of diff->forward into the module, for the operands that want a
 * gradient. */
void inline_gradient(Differentiator *diff);

/* The update section: the gradient norm where it is asked for, the optimizer's operator for each
 * trained parameter that no rule updates, and `rules`, what rules of optimizers and the model make,
 * with gradients in place of what stood for them. What needs a gradient that there is not is left
 * out. */
void insert_updates(Differentiator *diff, const Ops *rules);

/* Removes operators whose results nobody uses (ends: the loss, outputs, updated parameters and
 * states). */
void remove_dead_ops(Module *module);

#endif
