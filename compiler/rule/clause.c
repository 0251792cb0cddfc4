/* Reads a rule's clauses. Each clause has a function that reads an item, or the whole brackets.
 *
 *     ... kernel(k) grad(g) reduction(+: v) dtype(y: f32, t: integer)
 */
#include "rule/draft.h"

#include "syntax/lex.h"

#include <string.h>

/* Reads the name of a factor, and a `..` after it. Returns NULL after an error. */
static Factor *clause_factor(RuleDraft *draft) {
    Position at = draft->tokens.token->at;
    const char *name = tokens_name(&draft->tokens, "a factor");
    int factor = name ? rule_factor(draft, name) : -1;
    if (name && factor < 0) rule_unknown_factor(draft, at, name);
    tokens_take(&draft->tokens, "..");
    return factor < 0 ? NULL : &draft->factors.at[factor];
}

/* Returns !said. If `said`, reports that a clause is given twice for the last token, a name. */
static bool first_time(RuleDraft *draft, bool said) {
    const Token *name = draft->tokens.token - 1;
    if (said)
        RULE_ERROR(draft, name->at, "this clause says something of '%s' a second time", name->text);
    return !said;
}

static bool replicate_item(RuleDraft *draft) {
    Factor *factor = clause_factor(draft);
    return factor && first_time(draft, factor->replicate) && (factor->replicate = true);
}

static bool offset_item(RuleDraft *draft) {
    Factor *factor = clause_factor(draft);
    return factor && first_time(draft, factor->offset) && (factor->offset = true);
}

/* Reads `op: f, g`, perhaps followed by another operator and its factors. */
static bool reduction_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    FactorReduction reduction = REDUCE_NONE;
    do {
        if (tokens_is(tokens, "+") || (tokens_is(tokens, "max") && tokens_before(tokens, ":"))) {
            reduction = tokens_is(tokens, "+") ? REDUCE_SUM : REDUCE_MAX;
            tokens_next(tokens);
            if (!tokens_expect(tokens, ":", "after the reduction's operator")) return false;
        }
        if (reduction == REDUCE_NONE)
            return RULE_ERROR(draft, tokens->token->at,
                              "expected '+:' or 'max:' before the factor, not %s",
                              tokens_shown(tokens));
        Factor *factor = clause_factor(draft);
        if (!factor || !first_time(draft, factor->reduction)) return false;
        factor->reduction = reduction;
    } while (tokens_take(tokens, ","));
    return true;
}

/* Reads `f: operator`. */
static bool merge_item(RuleDraft *draft) {
    Factor *factor = clause_factor(draft);
    if (!factor || !first_time(draft, factor->merge) ||
        !tokens_expect(&draft->tokens, ":", "after the factor"))
        return false;
    factor->merge_at = draft->tokens.token->at;
    return (factor->merge = tokens_name(&draft->tokens, "the name of an operator")) != NULL;
}

/* Reads `f: expression` or `f: +m`, the sum of m over the tensors of a variadic operand. */
static bool size_item(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    Factor *factor = clause_factor(draft);
    if (!factor || !first_time(draft, factor->size) ||
        !tokens_expect(tokens, ":", "after the factor"))
        return false;
    if (!tokens_take(tokens, "+"))
        return (factor->size = expr_parse(tokens, rule_integer_primary, draft)) != NULL;
    const Factor *summed = clause_factor(draft);
    draft->size_sum_of = summed ? (int)(summed - draft->factors.at) : -1;
    return summed && (factor->size = expr_leaf(draft->arena, EXPR_SIZE, draft->size_sum_of));
}

/* Reads a floating-point argument, or else calls rule_integer_primary. Implements ExprPrimary. */
static const Expr *number_primary(Tokens *tokens, void *context) {
    RuleDraft *draft = context;
    int attr = tokens->token->kind == TOKEN_NAME
                   ? rule_attr(draft, tokens->token->text, PARAM_FLOAT, PARAM_FLOAT)
                   : -1;
    if (attr < 0) return rule_integer_primary(tokens, context);
    tokens_next(tokens);
    return expr_leaf(draft->arena, EXPR_ATTR, attr);
}

static bool requires_item(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    const Token *first = tokens->token;
    Position at = tokens->token->at;
    const Expr *condition = expr_parse(tokens, number_primary, draft);
    if (condition && expr_mentions(condition, EXPR_CALL, -1))
        RULE_ERROR(draft, at, "a condition of the clause requires calls no function");
    if (!condition || draft->failed) return false;
    array_push(draft->arena, &draft->rule.requirements,
               (Requirement){condition, token_line(draft->arena, first, tokens->token)});
    return true;
}

static bool operations_clause(RuleDraft *draft) {
    return (draft->rule.call.operations =
                expr_parse(&draft->tokens, rule_integer_primary, draft)) != NULL;
}

/* Reads the name of an operand or result and returns its index; -1 after an error. */
static int clause_access(RuleDraft *draft, bool result) {
    Position at = draft->tokens.token->at;
    const char *name = tokens_name(&draft->tokens, result ? "a result" : "an operand");
    int index = !name ? -1 : result ? rule_result(draft, name) : rule_operand(draft, name);
    if (!name || index >= 0) return index;
    int count = result ? draft->results.count : draft->operands.count;
    const char **names = arena_array(draft->arena, const char *, count + 1);
    for (int i = 0; i < count; i++)
        names[i] = result ? draft->results.at[i].name : draft->operands.at[i].name;
    return rule_unknown(draft, at, result ? "a result of the rule" : "an operand of the rule", name,
                        names),
           -1;
}

/* Returns the element type that the current token names; -1 if it names none. */
static int named_dtype(const RuleDraft *draft) {
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (tokens_is(&draft->tokens, dtype_name((DType)i))) return i;
    return -1;
}

static bool unknown_element(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    const char **names =
        arena_array(draft->arena, const char *, DTYPE_COUNT + 3 + draft->operands.count);
    int count = 0;
    for (; count < DTYPE_COUNT; count++) names[count] = dtype_name((DType)count);
    names[count++] = "wide";
    names[count++] = "integer";
    for (int i = 0; i < draft->operands.count; i++) names[count++] = draft->operands.at[i].name;
    return rule_unknown(draft, tokens->token->at,
                        "an element type, nor an operand, nor a parameter of type ht_dtype",
                        tokens->token->text, names);
}

/* Reads the type after the colon of clause `dtype`; only `of_operand` may it be `integer`. */
static bool parse_element(RuleDraft *draft, Element *element, bool of_operand) {
    Tokens *tokens = &draft->tokens;
    const char *name = tokens->token->text;
    int dtype = named_dtype(draft), attr = rule_attr(draft, name, PARAM_DTYPE, PARAM_DTYPE),
        operand = rule_operand(draft, name);
    if (dtype >= 0) *element = (Element){ELEMENT_FIXED, dtype};
    else if (attr >= 0) *element = (Element){ELEMENT_ARGUMENT, attr};
    else if (operand >= 0) *element = (Element){ELEMENT_OPERAND, operand};
    else if (tokens_is(tokens, "wide")) *element = (Element){ELEMENT_WIDE, 0};
    else if (of_operand && tokens_is(tokens, "integer")) *element = (Element){ELEMENT_INTEGER, 0};
    else return unknown_element(draft);
    tokens_next(tokens);
    return true;
}

/* Reads the name of an operand or result; NULL after an error. */
static Access *clause_tensor(RuleDraft *draft) {
    int result = rule_result(draft, draft->tokens.token->text);
    int index = result >= 0 ? clause_access(draft, true) : clause_access(draft, false);
    return index < 0 ? NULL : result >= 0 ? &draft->results.at[index] : &draft->operands.at[index];
}

/* Reads the element type of a local value, which must be fixed. */
static bool parse_fixed(RuleDraft *draft, Element *element) {
    Tokens *tokens = &draft->tokens;
    if (named_dtype(draft) >= 0) return parse_element(draft, element, false);
    return RULE_ERROR(draft, tokens->token->at,
                      "expected one of f32, bf16, f64, i32, i64, not %s: the value is no result",
                      tokens_shown(tokens));
}

static bool dtype_item(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    int value = rule_value(draft, tokens->token->text), local = value - draft->results.count;
    if (local >= 0) {
        tokens_next(tokens);
        return tokens_expect(tokens, ":", "after the value") &&
               parse_fixed(draft, &draft->locals.at[local].element);
    }
    Access *access = clause_tensor(draft);
    return access && first_time(draft, access->element.kind != ELEMENT_FOLLOWS) &&
           tokens_expect(tokens, ":", "after the tensor") &&
           parse_element(draft, &access->element, value < 0);
}

static bool types_item(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    int dtype = named_dtype(draft);
    if (dtype < 0)
        return RULE_ERROR(draft, tokens->token->at,
                          "expected one of f32, bf16, f64, i32, i64, not %s", tokens_shown(tokens));
    tokens_next(tokens);
    if (!first_time(draft, draft->rule.call.types >> dtype & 1)) return false;
    draft->rule.call.types |= 1u << dtype;
    return true;
}

static bool inplace_item(RuleDraft *draft) {
    int result = clause_access(draft, true);
    if (result < 0 || !first_time(draft, draft->results.at[result].inplace >= 0) ||
        !tokens_expect(&draft->tokens, ":", "after the result"))
        return false;
    int operand = clause_access(draft, false);
    if (operand >= 0) draft->results.at[result].inplace = operand;
    return operand >= 0;
}

/* Reads the factor `n` of row(n). */
static bool row_clause(RuleDraft *draft) {
    Position at = draft->tokens.token->at;
    const Factor *factor = clause_factor(draft);
    if (!factor) return false;
    draft->rule.copy.row = (int)(factor - draft->factors.at);
    for (int i = 0; i < draft->operands.count; i++)
        if (draft->operands.at[i].variadic)
            return draft->size_sum_of >= 0 ||
                   RULE_ERROR(draft, at,
                              "the clause row stands behind the size of '%s': size(%s: +m)",
                              factor->name, factor->name);
    return RULE_ERROR(draft, at,
                      "the clause row needs an operand of any number of tensors: xs[][m]");
}

/* Reads an item `x: s` of the clause `pitch`. */
static bool pitch_item(RuleDraft *draft) {
    Access *access = clause_tensor(draft);
    if (!access || !first_time(draft, access->pitch >= 0) ||
        !tokens_expect(&draft->tokens, ":", "after the tensor"))
        return false;
    Position at = draft->tokens.token->at;
    const Factor *factor = clause_factor(draft);
    if (!factor) return false;
    access->pitch = (int)(factor - draft->factors.at);
    return access_has(access, access->pitch) ||
           RULE_ERROR(draft, at, "'%s' lacks the factor '%s'", access->name, factor->name);
}

/* Reads an item `y: more` of the clause `plus`. */
static bool plus_item(RuleDraft *draft) {
    int result = clause_access(draft, true);
    if (result < 0 || !first_time(draft, draft->results.at[result].plus >= 0) ||
        !tokens_expect(&draft->tokens, ":", "after the result"))
        return false;
    Position at = draft->tokens.token->at;
    int operand = clause_access(draft, false);
    if (operand < 0) return false;
    const Access *y = &draft->results.at[result], *more = &draft->operands.at[operand];
    draft->results.at[result].plus = operand;
    return (more->optional && rule_dims_equal(more, y)) ||
           RULE_ERROR(
               draft, at,
               "'%s' is added to '%s': it has the same indices, and may be absent (?%s[...])",
               more->name, y->name, more->name);
}

/* Reads `s, t: expression`; writes the numbers of s and t. Returns NULL after an error. */
static const Expr *two_factors(RuleDraft *draft, int *first, int *second) {
    Tokens *tokens = &draft->tokens;
    const Factor *one = clause_factor(draft);
    const Factor *other =
        one && tokens_expect(tokens, ",", "after the first factor") ? clause_factor(draft) : NULL;
    if (!other || !tokens_expect(tokens, ":", "after the factors")) return NULL;
    *first = (int)(one - draft->factors.at);
    *second = (int)(other - draft->factors.at);
    if (one != other && !one->ellipsis && !other->ellipsis)
        return expr_parse(tokens, rule_integer_primary, draft);
    RULE_ERROR(draft, tokens->token[-1].at,
               "the clause names two factors that each stand for one dimension");
    return NULL;
}

static bool causal_clause(RuleDraft *draft) {
    return (draft->rule.causal.when =
                two_factors(draft, &draft->rule.causal.from, &draft->rule.causal.to)) != NULL;
}

static bool shift_clause(RuleDraft *draft) {
    return (draft->rule.copy.shift =
                two_factors(draft, &draft->rule.copy.whole, &draft->rule.copy.part)) != NULL;
}

/* Reports a name where a number must stand. Implements ExprPrimary. */
static const Expr *no_primary(Tokens *tokens, void *context) {
    RULE_ERROR((RuleDraft *)context, tokens->token->at,
               "expected a number or a function of numbers, as in neutral(x: logf(0)), not %s",
               tokens_shown(tokens));
    return NULL;
}

/* Reads an item `x: number` of the clause `neutral`. */
static bool neutral_item(RuleDraft *draft) {
    Access *access = clause_tensor(draft);
    return access && first_time(draft, access->neutral) &&
           tokens_expect(&draft->tokens, ":", "after the tensor") &&
           (access->neutral = expr_parse(&draft->tokens, no_primary, draft)) != NULL;
}

/* Reads an item `y: i` of the clause `place`. */
static bool place_item(RuleDraft *draft) {
    Position at = draft->tokens.token->at;
    int result = clause_access(draft, true);
    if (result < 0 || !first_time(draft, draft->results.at[result].place >= 0) ||
        !tokens_expect(&draft->tokens, ":", "after the result"))
        return false;
    const Factor *factor = clause_factor(draft);
    if (!factor) return false;
    draft->results.at[result].place = (int)(factor - draft->factors.at);
    return access_has(&draft->results.at[result], draft->results.at[result].place) ||
           RULE_ERROR(draft, at, "the result '%s' lacks the factor '%s'",
                      draft->results.at[result].name, factor->name);
}

static bool reads_item(RuleDraft *draft) {
    int operand = clause_access(draft, false);
    if (operand < 0 || !first_time(draft, draft->operands.at[operand].reads) ||
        !tokens_expect(&draft->tokens, ":", "after the operand"))
        return false;
    return (draft->operands.at[operand].reads =
                expr_parse(&draft->tokens, rule_integer_primary, draft)) != NULL;
}

static bool linear_item(RuleDraft *draft) {
    int operand = clause_access(draft, false);
    if (operand < 0 || !first_time(draft, draft->operands.at[operand].linear)) return false;
    draft->operands.at[operand].linear = draft->linear_groups;
    return true;
}

static bool shape_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    draft->shape_at = tokens->token->at;
    const char *name = tokens->token->text;
    draft->rule.shape_attr = rule_attr(draft, name, PARAM_SHAPE, PARAM_SHAPE);
    if (draft->rule.shape_attr < 0)
        return rule_unknown(draft, tokens->token->at, "a parameter of type ht_dims", name, NULL);
    tokens_next(tokens);
    return true;
}

/* Reads the name of a C function; NULL after an error. */
static const char *function_name(RuleDraft *draft) {
    return tokens_name(&draft->tokens, "the name of a C function");
}

/* Reports and returns whether the rule already has a kernel for that back end. */
static bool kernel_given(RuleDraft *draft, const RuleKernel *kernel) {
    for (int i = 0; i < draft->kernels.count; i++) {
        const char *before = draft->kernels.at[i].backend;
        if (before && kernel->backend ? !strcmp(before, kernel->backend)
                                      : before == kernel->backend) {
            RULE_ERROR(draft, kernel->at, "the rule names a kernel for this already: '%s'",
                       draft->kernels.at[i].function);
            return true;
        }
    }
    return false;
}

/* Reads `f` or `BACKEND: f`. The frontend checks that the back end exists. */
static bool kernel_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    RuleKernel kernel = {.at = tokens->token->at};
    kernel.function = function_name(draft);
    if (kernel.function && tokens_take(tokens, ":")) {
        kernel = (RuleKernel){
            .backend = kernel.function, .backend_at = kernel.at, .at = tokens->token->at};
        kernel.function = function_name(draft);
    }
    if (!kernel.function || kernel_given(draft, &kernel)) return false;
    array_push(draft->arena, &draft->kernels, kernel);
    return true;
}

/* Reads an integer argument's name; writes its attribute index. Returns false after an error. */
static bool integer_argument(RuleDraft *draft, int *attr) {
    Tokens *tokens = &draft->tokens;
    const Expr *argument =
        tokens->token->kind == TOKEN_NAME ? rule_integer_primary(tokens, draft) : NULL;
    if (!argument || argument->kind != EXPR_ATTR) {
        if (!diag_errors(draft->diag))
            RULE_ERROR(draft, tokens->token->at,
                       "expected an integer parameter of the function, not %s",
                       tokens_shown(tokens));
        return false;
    }
    *attr = argument->index;
    return true;
}

static bool tiles_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    return (draft->rule.tiles.op = function_name(draft)) &&
           tokens_expect(tokens, ":", "after the operator") &&
           integer_argument(draft, &draft->rule.tiles.dim) &&
           tokens_expect(tokens, ",", "after the dimension") &&
           integer_argument(draft, &draft->rule.tiles.start);
}

/* Reads `x: op, whole`. */
static bool with_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    draft->rule.with.operand = clause_access(draft, false);
    return draft->rule.with.operand >= 0 && tokens_expect(tokens, ":", "after the operand") &&
           (draft->rule.with.op = function_name(draft)) &&
           tokens_expect(tokens, ",", "after the operator") &&
           (draft->rule.with.whole = function_name(draft));
}

static bool epilogue_clause(RuleDraft *draft) {
    return (draft->rule.epilogue = function_name(draft)) != NULL;
}

static bool grad_clause(RuleDraft *draft) {
    draft->rule.grad.at = draft->tokens.token->at;
    return (draft->rule.grad.function = function_name(draft)) != NULL;
}

/* ---- the clause `body` ---- */

/* Reads `value = expression`, and adds the equation afterwards, so that no value uses itself. */
static bool clause_equation(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    int value = rule_read_value(draft);
    if (value < 0 || !tokens_expect(tokens, "=", "after the value")) return false;
    const Expr *expr = expr_parse(tokens, rule_body_primary, draft);
    if (expr) array_push(draft->arena, &draft->equations, (RuleEquation){value, expr});
    return expr != NULL;
}

static bool body_clause(RuleDraft *draft) {
    draft->in_equations = true;
    bool good;
    do good = clause_equation(draft);
    while (good && tokens_take(&draft->tokens, ";"));
    draft->in_equations = false;
    return good;
}

/* ---- all clauses ---- */

/* A clause. `item` returns false after an error; with `list` it reads one item, else the whole
 * brackets. `once`: the clause describes the whole rule and may occur only once. */
typedef struct Clause {
    const char *name;
    bool (*item)(RuleDraft *draft);
    bool list, once;
} Clause;

static const Clause clauses[] = {
    {"replicate", replicate_item, true, false}, {"reduction", reduction_clause, false, false},
    {"offset", offset_item, true, false},       {"size", size_item, true, false},
    {"dtype", dtype_item, true, false},         {"shape", shape_clause, false, true},
    {"types", types_item, true, false},         {"linear", linear_item, true, false},
    {"inplace", inplace_item, true, false},     {"kernel", kernel_clause, false, false},
    {"requires", requires_item, true, false},   {"grad", grad_clause, false, true},
    {"body", body_clause, false, true},         {"epilogue", epilogue_clause, false, true},
    {"tiles", tiles_clause, false, true},       {"operations", operations_clause, false, true},
    {"reads", reads_item, true, false},         {"merge", merge_item, true, false},
    {"causal", causal_clause, false, true},     {"neutral", neutral_item, true, false},
    {"place", place_item, true, false},         {"shift", shift_clause, false, true},
    {"plus", plus_item, true, false},           {"row", row_clause, false, true},
    {"pitch", pitch_item, true, false},         {"with", with_clause, false, true}};
enum { CLAUSE_COUNT = sizeof clauses / sizeof *clauses };

static const Clause *find_clause(RuleDraft *draft) {
    const char *names[CLAUSE_COUNT + 1] = {0};
    Position at = draft->tokens.token->at;
    const char *name = tokens_name(&draft->tokens, "an operator or a clause");
    for (int i = 0; name && i < CLAUSE_COUNT; i++) {
        names[i] = clauses[i].name;
        if (!strcmp(name, names[i])) return &clauses[i];
    }
    return name ? (rule_unknown(draft, at, "a clause of a rule", name, names), NULL) : NULL;
}

static bool parse_clause(RuleDraft *draft) {
    Tokens *tokens = &draft->tokens;
    const Clause *clause = find_clause(draft);
    if (!clause) return false;
    unsigned bit = 1u << (clause - clauses);
    if (clause->once && draft->clauses & bit)
        return RULE_ERROR(draft, tokens->token[-1].at, "the clause %s stands here a second time",
                          clause->name);
    draft->clauses |= bit;
    if (!tokens_expect(tokens, "(", "after the clause's name")) return false;
    draft->linear_groups += clause->item == linear_item;
    do {
        if (!clause->item(draft)) return false;
    } while (clause->list && tokens_take(tokens, ","));
    return tokens_expect(tokens, ")", "at the end of the clause");
}

void rule_clauses(RuleDraft *draft) {
    while (!tokens_end(&draft->tokens))
        if (!parse_clause(draft)) {
            rule_fail(draft);
            return;
        }
}
