/* Binds a rule to the operands of a call (ir_bind), with the library compiler/binding:
 *
 *     bind.c        maps operands, expands ellipses, makes the results
 *     dtype.c       element types of operators
 *     requires.c    evaluates the clause `requires`
 *     view.c        binds views (reshapes)
 *
 * ir/binding.h has an example. */
#pragma once

#include "binding/binding.h"
#include "ir/module.h"
#include "rule/expr.h"

typedef struct Binder {
    Arena *arena;
    Diag *diag; // NULL: reports no errors
    Position at;
    const OpDef *def;
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    int operand_count;
    BindCall call; // call.context is this Binder
} Binder;

#define ERROR(binder, ...)                                                                         \
    ((binder)->call.failed = true,                                                                 \
     (binder)->diag ? diag_error((binder)->diag, (binder)->at, __VA_ARGS__) : (void)0)
#define NOTE(binder, where, ...)                                                                   \
    ((binder)->diag ? diag_note((binder)->diag, (where), __VA_ARGS__) : (void)0)

/* Returns a type for messages: "f32[2, 3]". */
const char *bind_type_text(const Binder *binder, Type type);

/* Adds a note at the source line that made an operand. */
void bind_note_value(const Binder *binder, int operand);

/* Returns compiler/binding's form of a tensor; `value` NULL: an absent operand, or a result. */
BindTensor bind_tensor(const Access *access, int operand, int member, const Value *value);

/* Returns the first condition of the clause `requires` that the call violates; NULL: none. */
const char *bind_violated(const BindCall *call);

/* Reports a remainder (%) of floating-point operands: as in C, it takes integers. */
void bind_check_remainders(Binder *binder);

/* Binds a RULE_VIEW, and writes its result's type to *type. Returns NULL after an error. */
const Binding *bind_view(Binder *binder, Type *type);
