/* Rules and operators: a rule in memory, as rule_parse reads it or a pass builds it (build.h).
 *
 *     ht_tensor scale(ht_tensor x, float by);    with the rule    y[i..] = x[i..] * by
 *
 * has the OpDef {"scale", params {x: PARAM_TENSOR, by: PARAM_FLOAT}} and the Rule {RULE_BODY,
 * RULE_MAP, factors {i..}, results {y}, operands {x}, body EXPR_MUL(access 0, attribute 0)}.
 * grammar.h defines the notation of rules. */
#pragma once

#include "rule/grammar.h"

typedef struct Tokens Tokens;

enum { IR_MAX_RESULTS = 8 }; // most results of an operator

/* A parameter of the operator's C function. */
typedef enum ParamKind {
    PARAM_TENSOR,
    PARAM_TENSORS,
    PARAM_INT,
    PARAM_FLOAT,
    PARAM_SHAPE,
    PARAM_DTYPE
} ParamKind;
typedef struct OpParam {
    const char *name;
    ParamKind kind;
} OpParam;

typedef enum RuleKind { RULE_BODY, RULE_CALL, RULE_EQUATIONS, RULE_VIEW } RuleKind;

/* The form of a RULE_BODY's expression. */
typedef enum RuleForm {
    RULE_OTHER,     // the rule is not a RULE_BODY
    RULE_MAP,       // elementwise: no factor is contracted
    RULE_REDUCTION, // a sum over contracted factors
    RULE_PRODUCT    // a sum of products of two operands, perhaps with an optional term (a bias)
} RuleForm;

typedef struct Rule {
    RuleKind kind;
    RuleForm form;
    const char *text; // the rule as written, with blanks normalised, for rule_parse
    int factor_count, result_count, operand_count;
    const Factor *factors;
    const Access *results, *operands;
    const Expr *body; // RULE_BODY
    RuleEquations equations;
    Requirements requirements;
    RuleCall call;
    int shape_attr; // RULE_VIEW: clause `shape`
    RuleCausal causal;
    RuleCopy copy;
    RuleTiles tiles;
    RuleWith with;
    // Clause `epilogue`; NULL: none. In RULE_EQUATIONS, equation 2 applies it to a product.
    const char *epilogue;
    RuleGrad grad;
} Rule;

/* An operator: a C function with a rule. Its attributes are the parameters that are not tensors, in
 * order. */
typedef struct OpDef {
    const char *name;
    Position at;
    int param_count, attr_count;
    const OpParam *params; // tensors and attributes, in the C function's order
    const Rule *rule;
} OpDef;

/* Reads a rule with its clauses, up to the end of the line or text; names refer to the parameters.
 * Returns NULL after it reported errors. */
const Rule *rule_parse(Tokens *tokens, const OpParam *params, int param_count);

/* Makes the operator `name` from a rule's text: tensor parameters alone, without attributes. */
const OpDef *rule_inserted(Arena *arena, const char *name, const char *text);

/* Makes the operator that converts its operand to an element type. */
const OpDef *rule_convert(Arena *arena, DType dtype);

/* Returns the kernel for this back end, else the kernel for all back ends; NULL: there is none. */
const RuleKernel *rule_kernel(const Rule *rule, const char *backend);

/* Appends an access as the rule writes it: "x[b.., (g r)]", "xs[][i]". */
void rule_print_access(Text *out, const Rule *rule, const Access *access);

/* Returns whether the rule copies its one operand, perhaps to another element type. */
bool rule_is_copy(const Rule *rule);

/* Returns whether the rule adds its two operands element by element. */
bool rule_is_sum(const Rule *rule);

/* Fills `group` (operand_count entries) with the groups of operands in which the operator is
 * jointly linear, from the clause `linear` or from the body; 0: in no group. Partial sums pass
 * through all operands of a group together. */
void rule_linear(const Rule *rule, int *group);

/* Returns the kind of the parameter that is attribute `index`. */
ParamKind opdef_attr_kind(const OpDef *def, int index);

/* Returns whether results may be infinite although no operand is. Causes are an infinite constant
 * in an expression, such as logf(0), and the result of an empty piece. An empty piece is a maximum
 * over no elements, or a piece of clause `merge` without elements that a row reads. */
bool rule_has_infinity(const Rule *rule);
