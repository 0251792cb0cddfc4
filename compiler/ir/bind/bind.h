/* What the files that bind rules share: bind.c maps operands, counts ellipses and makes the result;
 * extent.c finds extents; dtype.c element types; view.c binds views. */
#ifndef IR_BIND_BIND_H
#define IR_BIND_BIND_H

#include "rule/expr.h"
#include "ir/module.h"

/* Where a bound factor's extent came from. */
typedef struct Source {
    int operand; // of the call; -1: clause size, or nothing yet
    int dim;
} Source;

typedef struct Binder {
    Arena *arena;
    Diag *diag; // NULL: errors are not reported
    Position at;
    const OpDef *def;
    const Rule *rule;
    const Attr *attrs;
    Value *const *operands;
    int operand_count;
    int *access; // by operand: the rule's operand
    int *member; // by operand: which tensor of a variadic one
    int members; // tensors that the variadic operand stands for
    int *count;  // by factor: how many dimensions it stands for; -1 not known
    bool *each;  // by factor: one a tensor of the variadic operand
    bool *used;  // by factor: a present operand or a result has it
    int *base;   // by factor: its first bound factor
    int bound_count;
    int64_t *extent; // by bound factor; -1 not known
    Source *source;  // by bound factor
    bool failed;
} Binder;

#define ERROR(binder, ...)                                                                         \
    ((binder)->failed = true,                                                                      \
     (binder)->diag ? diag_error((binder)->diag, (binder)->at, __VA_ARGS__) : (void)0)
#define NOTE(binder, where, ...)                                                                   \
    ((binder)->diag ? diag_note((binder)->diag, (where), __VA_ARGS__) : (void)0)

/* For messages: "f32[2, 3]", and an access as the rule writes it, "x[b.., i]". */
const char *bind_type_text(Binder *binder, Type type);
const char *bind_access_text(Binder *binder, const Access *access);

/* A note at the place where an operand was made. */
void bind_note_value(Binder *binder, int operand);

/* The dimensions of an access that are known, and the ellipsis that is not (-1 none, -2
 * several). */
int bind_known_rank(const Binder *binder, const Access *access, int *unknown);

/* The rule's factor that a bound factor belongs to. */
int bind_rule_factor(const Binder *binder, int bound);

/* Numbers the bound factors, after the ellipses have their counts. */
void bind_number_factors(Binder *binder);

/* An access with its ellipses expanded; `member` is which tensor of a variadic operand it is. */
BoundAccess bind_expand(Binder *binder, const Access *access, int index, int member);

/* The global extents of the rule's factors as far as they are known: products for ellipses, sums
 * over a variadic operand. */
void bind_factor_sizes(const Binder *binder, int64_t *size);

/* Whether the call keeps to the conditions of the clause requires; else the first that it does not
 * keep to is reported. */
bool bind_check_requirements(Binder *binder);

/* Finds all extents; false after an error. */
bool bind_extents(Binder *binder, const BoundAccess *operands);

/* Reports operands whose element types are not those that the rule asks for; whether there are
 * none. */
bool bind_check_dtypes(Binder *binder);

/* The element type of a result. */
DType bind_result_dtype(const Binder *binder, const Access *result);

/* Binds a RULE_VIEW; NULL after an error. */
const Binding *bind_view(Binder *binder, Type *type);

#endif
