/* A rule under construction. parse.c reads its results and right side, and clause.c its clauses; or
 * a pass fills it through build.c. check.c checks and finishes the rule. */
#pragma once

#include "rule/rule.h"
#include "syntax/tokens.h"

/* A leaf size(f) in a body whose factor f is not known yet. */
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
    Rule rule; // everything except its lists
    Array(Factor) factors;
    Array(Access) results, operands, locals;
    Array(RuleEquation) equations;
    Array(RuleKernel) kernels;
    Position shape_at;
    /* ---- only for a rule that is parsed ---- */
    Tokens tokens;
    const OpParam *params; // NULL: parameters are made from the operands (rule_inserted)
    int param_count;
    Array(ForwardSize) forward;
    bool in_equations; // inside the clause `body`
    int linear_groups;
    unsigned clauses; // bit i: clause i of clause.c was read
    int size_sum_of;  // the factor m of `size(f: +m)`; -1: no such clause
} RuleDraft;

/* Marks the draft as failed, after an error was reported. Returns false. */
static inline bool rule_fail(RuleDraft *draft) {
    draft->failed = true;
    return false;
}

/* Reports an error. Returns false. */
#define RULE_ERROR(draft, at, ...) (diag_error((draft)->diag, (at), __VA_ARGS__), rule_fail(draft))

static inline bool param_is_tensor(ParamKind kind) {
    return kind == PARAM_TENSOR || kind == PARAM_TENSORS;
}

/* Return the number of the factor, operand or result called `name`; -1: there is none. */
int rule_factor(const RuleDraft *draft, const char *name);
int rule_operand(const RuleDraft *draft, const char *name);
int rule_result(const RuleDraft *draft, const char *name);

/* Returns the number of a value of equations by name: results, then local values; -1: none. */
int rule_value(const RuleDraft *draft, const char *name);

/* Returns the index of attribute `name` if it has one of two kinds; -1: none. */
int rule_attr(const RuleDraft *draft, const char *name, ParamKind kind, ParamKind other);

/* Returns the parameter called `name`; NULL: there is none. */
const OpParam *rule_param(const RuleDraft *draft, const char *name);

/* Returns whether an operand is a tensor parameter of the right type; else reports an error. */
bool rule_check_param(RuleDraft *draft, const Access *access);

/* Reports that `name` is not `what` ("a factor of the rule"), and suggests the closest of `names`,
 * which end with NULL; NULL: suggests nothing. Returns false. */
bool rule_unknown(RuleDraft *draft, Position at, const char *what, const char *name,
                  const char *const *names);
void rule_unknown_factor(RuleDraft *draft, Position at, const char *name);

/* Reads size(f) or an integer argument. Implements ExprPrimary; `context`: the draft. */
const Expr *rule_integer_primary(Tokens *tokens, void *context);

/* Sets the factors of all leaves size(f) in a body that has been read completely. */
void rule_resolve_sizes(RuleDraft *draft);

/* Reads a name and returns an access with this name and no indices; the name is NULL after an
 * error. `expected` describes the name for the message. */
Access rule_access(RuleDraft *draft, const char *expected);

/* Reads the indices of an access with their brackets; false after an error. */
bool rule_dims(RuleDraft *draft, Access *access);

/* Reads [?]NAME[[]][indices] and returns the index of the operand; -1 after an error. */
int rule_read_operand(RuleDraft *draft);

/* Returns whether two accesses have the same indices. */
bool rule_dims_equal(const Access *a, const Access *b);

/* Reads an access, an argument or size(f). Implements ExprPrimary; `context`: the draft. */
const Expr *rule_body_primary(Tokens *tokens, void *context);

/* Returns whether an equation computes value `value` (numbered as rule_value does). */
bool rule_has_equation(const RuleDraft *draft, int value);

/* Reads an equation's left side. Returns the number of its value; -1 after an error. */
int rule_read_value(RuleDraft *draft);

/* Reads all clauses up to the end of the text. */
void rule_clauses(RuleDraft *draft);

/* Returns whether a RULE_BODY is jointly linear in a set of operands; bit i: operand i. */
bool rule_linear_in(const Rule *rule, unsigned set);

/* Returns the form of a rule that is complete except for its form. */
RuleForm rule_form(const Rule *rule);

/* Returns the text of a rule that was built. `name` stands before the operands of equations. */
const char *rule_printed(Arena *arena, const Rule *rule, const char *name);

/* Checks and returns the finished rule, without `text`. Returns NULL after it reported errors; some
 * errors are reported at `start`, the beginning of the rule. */
Rule *rule_finished(RuleDraft *draft, Position start);
