/* Declarations shared by the files that bind a rule to the operands of a call (ir_bind):
 *
 *     bind.c        maps operands, counts ellipses, makes the results
 *     extent.c      finds the extents of factors
 *     dtype.c       checks the element types of operands, finds those of results
 *     requires.c    checks the clause `requires`
 *     view.c        binds views (reshapes)
 *
 * ir/binding.h has an example. runtime/eager/bind.c does the same for the one-device library, on
 * tables that the build writes from the rules. It words its errors for a running program.
 */
#ifndef IR_BIND_BIND_H
#define IR_BIND_BIND_H

#include "rule/expr.h"
#include "ir/module.h"

/* The origin of a bound factor's extent, for messages. */
typedef struct Source {
    int operand; // index of the call's operand; -1: clause `size`, or unknown
    int dim;     // dimension of that operand
} Source;

typedef struct Binder {
    Arena *arena;
    Diag *diag; // NULL: reports no errors
    Position at;
    const OpDef *def;
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    int operand_count;
    int *access; // by operand: the rule's operand
    int *member; // by operand: its number among the tensors of a variadic operand
    int members; // number of tensors of the variadic operand
    int *count;  // by factor: the number of dimensions that it stands for; -1: unknown
    bool *each;  // by factor: each tensor of the variadic operand has an extent of its own
    bool *used;  // by factor: a present operand or a result has it
    int *base;   // by factor: its first bound factor
    int bound_count;
    int64_t *extent; // by bound factor; -1: unknown
    Source *source;  // by bound factor
    bool failed;
} Binder;

#define ERROR(binder, ...)                                                                         \
    ((binder)->failed = true,                                                                      \
     (binder)->diag ? diag_error((binder)->diag, (binder)->at, __VA_ARGS__) : (void)0)
#define NOTE(binder, where, ...)                                                                   \
    ((binder)->diag ? diag_note((binder)->diag, (where), __VA_ARGS__) : (void)0)

/* Return a type, "f32[2, 3]", and an access as the rule writes it, "x[b.., i]", for messages. */
const char *bind_type_text(Binder *binder, Type type);
const char *bind_access_text(Binder *binder, const Access *access);

/* Adds a note at the source line that made an operand. */
void bind_note_value(Binder *binder, int operand);

/* Returns the number of an access's dimensions, not counting ellipses of unknown counts. Writes the
 * factor of the only such ellipsis to *unknown; -1: there is none, -2: there are several. */
int bind_known_rank(const Binder *binder, const Access *access, int *unknown);

/* Returns the rule's factor that a bound factor belongs to. */
int bind_rule_factor(const Binder *binder, int bound);

/* Numbers the bound factors. Requires the counts of all ellipses. */
void bind_number_factors(Binder *binder);

/* Returns an access with its ellipses expanded, for tensor `member` of a variadic operand. */
BoundAccess bind_expand(Binder *binder, const Access *access, int index, int member);

/* Writes the global extents of the rule's factors: for an ellipsis the product of its dimensions,
 * for a factor of a variadic operand the sum over its tensors; -1: unknown or unused. */
void bind_factor_sizes(const Binder *binder, int64_t *size);

/* Returns whether the call meets the rule's clause `requires`; else reports the first violation. */
bool bind_check_requirements(Binder *binder);

/* Finds all extents. Returns false after an error. */
bool bind_extents(Binder *binder, const BoundAccess *operands);

/* Reports operands whose element types the rule does not allow. Returns whether there are none. */
bool bind_check_dtypes(Binder *binder);

/* Returns the element type of a result. */
DType bind_result_dtype(const Binder *binder, const Access *result);

/* Binds a RULE_VIEW. Returns NULL after an error. */
const Binding *bind_view(Binder *binder, Type *type);

#endif
