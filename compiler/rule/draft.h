/* A rule in the making: parse.c reads results, operands and the right side into it, clause.c the
 * clauses after them, or build.c takes all of it from a pass; check.c sees whether it fits
 * together, and finishes the rule. */
#ifndef RULE_DRAFT_H
#define RULE_DRAFT_H

#include "rule/rule.h"
#include "syntax/tokens.h"

/* size(f) in a body, before the factor is known. */
typedef struct ForwardSize {
    Expr *leaf;
    const char *name;
    Position at;
    bool ellipsis; // size(f..)
} ForwardSize;

typedef struct RuleDraft {
    Arena *arena;
    Diag *diag;
    bool failed;
    Rule rule; // all but its lists
    Array(Factor) factors;
    Array(Access) results, operands, locals;
    Array(RuleEquation) equations;
    Array(RuleKernel) kernels;
    Position shape_at;
    /* of a rule that is read */
    Tokens tokens;
    const OpParam *params; // NULL: operands are made up as they come (rule_inserted)
    int param_count;
    Array(ForwardSize) forward;
    bool in_equations; // the clause `body` is read
    int linear_groups;
    unsigned clauses; // that stood so far: a bit each
    int size_sum_of;  // the clause `size(f: +m)` names m; -1: none does
} RuleDraft;

/* Notes an error that was reported: false. */
static inline bool rule_fail(RuleDraft *draft) {
    draft->failed = true;
    return false;
}

/* Reports an error: false. */
#define RULE_ERROR(draft, at, ...) (diag_error((draft)->diag, (at), __VA_ARGS__), rule_fail(draft))

static inline bool param_is_tensor(ParamKind kind) {
    return kind == PARAM_TENSOR || kind == PARAM_TENSORS;
}

/* The factor, operand or result called `name`; -1 when there is none. */
int rule_factor(const RuleDraft *draft, const char *name);
int rule_operand(const RuleDraft *draft, const char *name);
int rule_result(const RuleDraft *draft, const char *name);

/* The value that equations may give called `name`: a result, or behind the results a local one; -1
 * when there is none. */
int rule_value(const RuleDraft *draft, const char *name);

/* The attribute called `name` of one of two kinds, and its index; -1 when there is none. */
int rule_attr(const RuleDraft *draft, const char *name, ParamKind kind, ParamKind other);

/* Reports that `name` is not `what` ("a factor of the rule"), and suggests the closest of `names`,
 * which end with NULL; NULL: suggests nothing. Returns false. */
bool rule_unknown(RuleDraft *draft, Position at, const char *what, const char *name,
                  const char *const *names);
void rule_unknown_factor(RuleDraft *draft, Position at, const char *name);

/* size(f) or an argument in an expression over integers: an ExprPrimary, `context` is the draft. */
const Expr *rule_integer_primary(Tokens *tokens, void *context);

/* An access by its name, the current token; without one after an error. `expected` says what it
 * stands for. */
Access rule_access(RuleDraft *draft, const char *expected);

/* The indices of an access, from the opening to the closing bracket; false after an error. */
bool rule_dims(RuleDraft *draft, Access *access);

/* Whether two accesses have the same indices. */
bool rule_dims_equal(const Access *a, const Access *b);

/* An ExprPrimary of bodies: accesses, arguments, size(f). `context` is the draft. */
const Expr *rule_body_primary(Tokens *tokens, void *context);

/* Whether an equation gives the value `value`: a result, or behind the results a local value. */
bool rule_has_equation(const RuleDraft *draft, int value);

/* The access of the value number `value` in an equation as an expression; NULL after an error. */
const Expr *rule_value_primary(RuleDraft *draft, int value);

/* The clauses up to the end of the text. */
void rule_clauses(RuleDraft *draft);

/* Whether a RULE_BODY is linear in a set of operands together, a bit each. */
bool rule_linear_in(const Rule *rule, unsigned set);

/* What the rule does; of a rule that is complete otherwise. */
RuleForm rule_form(const Rule *rule);

/* The text of a rule that was built; the name stands in front of the operands of equations. */
const char *rule_printed(Arena *arena, const Rule *rule, const char *name);

/* The rule without its text, which begins at `start`; NULL where it does not fit together, which is
 * reported. */
Rule *rule_finished(RuleDraft *draft, Position start);

#endif
