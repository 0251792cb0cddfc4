/* What the files of the rule parser share: parse.c reads results, operands and the right side, clause.c the clauses after it,
 * check.c sees whether all of it fits together. */
#ifndef RULE_PARSE_H
#define RULE_PARSE_H

#include "rule/expr.h"

/* size(f) in a body, before the factor is known. */
typedef struct ForwardSize {
    Expr *leaf;
    const char *name;
    Position at;
    bool ellipsis; // size(f..)
} ForwardSize;

typedef struct RuleParser {
    Tokens tokens;
    Arena *arena;
    Diag *diag;
    const OpParam *params; // NULL: operands are made up as they come (rule_inserted)
    int param_count;
    RuleKind kind;
    bool failed;
    Array(Factor) factors;
    Array(Position) factor_at;
    Array(Access) results, operands;
    Array(Position) result_at, operand_at;
    const Expr *body;
    Array(ForwardSize) forward;
    bool in_equations; // the clause `body` is read
    Array(Access) locals;
    Array(RuleEquation) equations;
    Requirements requirements;
    const Expr *operations;
    int shape_attr, linear_groups;
    unsigned types;
    Array(RuleKernel) kernels;
    const char *tiles, *epilogue, *grad;
    int tiles_dim, tiles_start;
    Position shape_at, grad_at;
    int size_sum_of; // the clause `size(f: +m)` names m
} RuleParser;

static inline void rule_fail(RuleParser *parser) { parser->failed = true; }

#define RULE_ERROR(parser, at, ...) (diag_error((parser)->diag, (at), __VA_ARGS__), rule_fail(parser))

static inline bool param_is_tensor(ParamKind kind) { return kind == PARAM_TENSOR || kind == PARAM_TENSORS; }

/* The factor called `name`; -1 when there is none. */
int rule_factor(const RuleParser *parser, const char *name);

/* The operand or result called `name`; -1 when there is none. */
int rule_operand(const RuleParser *parser, const char *name);
int rule_result(const RuleParser *parser, const char *name);

/* The attribute called `name` of one of two kinds, and its index; -1 when there is none. */
int rule_attr(const RuleParser *parser, const char *name, ParamKind kind, ParamKind other);

/* Reports that `name` is not known, with the closest of `names`. `what` says what it should be: "a factor". */
void rule_unknown(RuleParser *parser, Position at, const char *what, const char *name, const char *const *names, int count);
void rule_unknown_factor(RuleParser *parser, Position at, const char *name);

/* size(f) or an argument in an expression over integers: an ExprPrimary, `context` is the parser. */
const Expr *rule_integer_primary(Tokens *tokens, void *context);

/* The indices of an access, from the opening to the closing bracket; false after an error. */
bool rule_dims(RuleParser *parser, Access *access, Position at);

/* Whether two accesses have the same indices. */
bool rule_dims_equal(const Access *a, const Access *b);

/* An ExprPrimary of bodies: accesses, arguments, size(f). `context` is the parser. */
const Expr *rule_body_primary(Tokens *tokens, void *context);

/* Whether a name in an equation is a value that equations give; and its access as an expression, NULL after an error. */
bool rule_is_value(const RuleParser *parser, const char *name);
const Expr *rule_value_primary(RuleParser *parser);

/* The equations of the clause `body`, up to the closing bracket. */
bool rule_equations(RuleParser *parser);

/* Reports equations that do not fit together. */
void rule_check_equations(RuleParser *parser, Position start);

/* The clauses up to the end of the text. */
void rule_clauses(RuleParser *parser);

/* What the rule does; of a rule that is complete otherwise. */
RuleForm rule_form(const Rule *rule);

/* The rule that was read or built; its text NULL: as it is printed for the operator `name`. */
const Rule *rule_finished(const RuleParser *parser, const char *text, const char *name);

/* The text of a rule that was built; the name stands in front of the operands of equations. */
const char *rule_printed(Arena *arena, const Rule *rule, const char *name);

/* The operator of a rule without attributes. */
const OpDef *rule_def(Arena *arena, const char *name, const Rule *rule);

/* Reports what does not fit together; sets which factors are contracted. `start` is where the rule begins. */
void rule_check(RuleParser *parser, Position start);

#endif
