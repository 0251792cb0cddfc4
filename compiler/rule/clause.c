/* The clauses of a rule. */
#include "rule/parse.h"

#include <string.h>

/* The factor named by the current token; -1 after an error. `..` after it may be written. */
static int clause_factor(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, tokens->token->at, "expected a factor, not %s", tokens_shown(tokens));
        return -1;
    }
    const char *name = tokens->token->text;
    int factor = rule_factor(parser, name);
    if (factor < 0) {
        rule_unknown_factor(parser, tokens->token->at, name);
        return -1;
    }
    tokens_next(tokens);
    tokens_take(tokens, "..");
    return factor;
}

static bool replicate_item(RuleParser *parser)
{
    int factor = clause_factor(parser);
    if (factor >= 0)
        parser->factors.at[factor].replicate = true;
    return factor >= 0;
}

static bool offset_item(RuleParser *parser)
{
    int factor = clause_factor(parser);
    if (factor >= 0)
        parser->factors.at[factor].offset = true;
    return factor >= 0;
}

/* op: f, g, or another op: h. */
static bool reduction_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Reduction reduction = REDUCE_NONE;
    do {
        if (tokens_is(tokens, "+") || (tokens_is(tokens, "max") && tokens_before(tokens, ":"))) {
            reduction = tokens_is(tokens, "+") ? REDUCE_SUM : REDUCE_MAX;
            tokens_next(tokens);
            if (!tokens_expect(tokens, ":", "after the reduction's operator"))
                return false;
        }
        if (reduction == REDUCE_NONE) {
            RULE_ERROR(parser, tokens->token->at, "expected '+:' or 'max:' before the factor, not %s", tokens_shown(tokens));
            return false;
        }
        int factor = clause_factor(parser);
        if (factor < 0)
            return false;
        parser->factors.at[factor].reduction = reduction;
    } while (tokens_take(tokens, ","));
    return true;
}

/* f: expression, or f: +m. */
static bool size_item(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    int factor = clause_factor(parser);
    if (factor < 0 || !tokens_expect(tokens, ":", "after the factor"))
        return false;
    const Expr *size;
    if (tokens_take(tokens, "+")) {
        int summed = parser->size_sum_of = clause_factor(parser);
        size = summed < 0 ? NULL : expr_leaf(parser->arena, EXPR_SIZE, summed);
    } else {
        size = expr_parse(tokens, rule_integer_primary, parser);
    }
    parser->factors.at[factor].size = size;
    return size != NULL;
}

/* An argument that is a number, or size(f). */
static const Expr *number_primary(Tokens *tokens, void *context)
{
    RuleParser *parser = context;
    int attr = tokens->token->kind == TOKEN_NAME ? rule_attr(parser, tokens->token->text, PARAM_FLOAT, PARAM_FLOAT) : -1;
    if (attr < 0)
        return rule_integer_primary(tokens, context);
    tokens_next(tokens);
    return expr_leaf(parser->arena, EXPR_ATTR, attr);
}

static bool requires_item(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    const Token *first = tokens->token;
    Position at = tokens->token->at;
    const Expr *condition = expr_parse(tokens, number_primary, parser);
    if (condition && expr_calls(condition))
        RULE_ERROR(parser, at, "a condition of the clause requires calls no function");
    if (!condition || parser->failed)
        return false;
    array_push(parser->arena, &parser->requirements, (Requirement){condition, token_line(parser->arena, first, tokens->token)});
    return true;
}

static bool operations_clause(RuleParser *parser)
{
    return (parser->operations = expr_parse(&parser->tokens, rule_integer_primary, parser)) != NULL;
}

/* The operand or result that the current token names; -1 after an error. */
static int clause_access(RuleParser *parser, bool result)
{
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, tokens->token->at, "expected %s, not %s", result ? "a result" : "an operand", tokens_shown(tokens));
        return -1;
    }
    const char *name = tokens->token->text;
    int index = result ? rule_result(parser, name) : rule_operand(parser, name);
    if (index < 0) {
        int count = result ? parser->results.count : parser->operands.count;
        const char **names = arena_array(parser->arena, const char *, count + 1);
        for (int i = 0; i < count; i++)
            names[i] = result ? parser->results.at[i].name : parser->operands.at[i].name;
        rule_unknown(parser, tokens->token->at, result ? "a result of the rule" : "an operand of the rule", name, names, count);
        return -1;
    }
    tokens_next(tokens);
    return index;
}

/* The element type that the current token names; -1 when it names none. */
static int named_dtype(const RuleParser *parser)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (tokens_is(&parser->tokens, dtype_name((DType)i)))
            return i;
    return -1;
}

static bool unknown_element(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    const char **names = arena_array(parser->arena, const char *, DTYPE_COUNT + 2 + parser->operands.count);
    int count = 0;
    for (; count < DTYPE_COUNT; count++)
        names[count] = dtype_name((DType)count);
    names[count++] = "wide";
    names[count++] = "integer";
    for (int i = 0; i < parser->operands.count; i++)
        names[count++] = parser->operands.at[i].name;
    rule_unknown(parser, tokens->token->at, "an element type, nor an operand, nor a parameter of type ht_dtype", tokens->token->text, names,
                 count);
    return false;
}

/* What stands behind the colon of the clause dtype. */
static bool parse_element(RuleParser *parser, Element *element, bool of_operand)
{
    Tokens *tokens = &parser->tokens;
    const char *name = tokens->token->text;
    int dtype = named_dtype(parser), attr = rule_attr(parser, name, PARAM_DTYPE, PARAM_DTYPE), operand = rule_operand(parser, name);
    if (dtype >= 0)
        *element = (Element){ELEMENT_FIXED, dtype};
    else if (attr >= 0)
        *element = (Element){ELEMENT_ARGUMENT, attr};
    else if (operand >= 0)
        *element = (Element){ELEMENT_OPERAND, operand};
    else if (tokens_is(tokens, "wide"))
        *element = (Element){ELEMENT_WIDE, 0};
    else if (of_operand && tokens_is(tokens, "integer"))
        *element = (Element){ELEMENT_INTEGER, 0};
    else
        return unknown_element(parser);
    tokens_next(tokens);
    return true;
}

/* The operand or result that the current token names; NULL after an error. */
static Access *clause_tensor(RuleParser *parser)
{
    int result = rule_result(parser, parser->tokens.token->text);
    int index = result >= 0 ? clause_access(parser, true) : clause_access(parser, false);
    return index < 0 ? NULL : result >= 0 ? &parser->results.at[index] : &parser->operands.at[index];
}

/* The value of the clause `body` that the current token names, which is no result; NULL when it names none. */
static Access *clause_local(RuleParser *parser)
{
    for (int i = 0; i < parser->locals.count; i++)
        if (tokens_is(&parser->tokens, parser->locals.at[i].name))
            return &parser->locals.at[i];
    return NULL;
}

/* The type of a value in between: one that is fixed. */
static bool parse_fixed(RuleParser *parser, Element *element)
{
    Tokens *tokens = &parser->tokens;
    if (named_dtype(parser) >= 0)
        return parse_element(parser, element, false);
    RULE_ERROR(parser, tokens->token->at, "expected one of f32, bf16, f64, i32, i64, not %s: the value is no result", tokens_shown(tokens));
    return false;
}

static bool dtype_item(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Access *local = clause_local(parser);
    if (local) {
        tokens_next(tokens);
        return tokens_expect(tokens, ":", "after the value") && parse_fixed(parser, &local->element);
    }
    bool of_operand = rule_result(parser, tokens->token->text) < 0;
    Access *access = clause_tensor(parser);
    return access && tokens_expect(tokens, ":", "after the tensor") && parse_element(parser, &access->element, of_operand);
}

static bool types_item(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    int dtype = named_dtype(parser);
    if (dtype < 0) {
        RULE_ERROR(parser, tokens->token->at, "expected one of f32, bf16, f64, i32, i64, not %s", tokens_shown(tokens));
        return false;
    }
    parser->types |= 1u << dtype;
    tokens_next(tokens);
    return true;
}

static bool inplace_item(RuleParser *parser)
{
    int result = clause_access(parser, true);
    if (result < 0 || !tokens_expect(&parser->tokens, ":", "after the result"))
        return false;
    int operand = clause_access(parser, false);
    if (operand >= 0)
        parser->results.at[result].inplace = operand;
    return operand >= 0;
}

static bool reads_item(RuleParser *parser)
{
    int operand = clause_access(parser, false);
    if (operand < 0 || !tokens_expect(&parser->tokens, ":", "after the operand"))
        return false;
    return (parser->operands.at[operand].reads = expr_parse(&parser->tokens, rule_integer_primary, parser)) != NULL;
}

static bool linear_item(RuleParser *parser)
{
    int operand = clause_access(parser, false);
    if (operand >= 0)
        parser->operands.at[operand].linear = parser->linear_groups;
    return operand >= 0;
}

static bool shape_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    parser->shape_at = tokens->token->at;
    const char *name = tokens->token->text;
    parser->shape_attr = rule_attr(parser, name, PARAM_SHAPE, PARAM_SHAPE);
    if (parser->shape_attr < 0) {
        rule_unknown(parser, tokens->token->at, "a parameter of type ht_dims", name, NULL, 0);
        return false;
    }
    tokens_next(tokens);
    return true;
}

/* The name of a C function; NULL after an error. */
static const char *function_name(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, tokens->token->at, "expected the name of a C function, not %s", tokens_shown(tokens));
        return NULL;
    }
    const char *name = tokens->token->text;
    tokens_next(tokens);
    return name;
}

/* kernel(f) or kernel(BACKEND: f); which back ends there are is for others to know. */
static bool kernel_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    RuleKernel kernel = {.at = tokens->token->at};
    kernel.function = function_name(parser);
    if (kernel.function && tokens_take(tokens, ":")) {
        kernel = (RuleKernel){.backend = kernel.function, .backend_at = kernel.at, .at = tokens->token->at};
        kernel.function = function_name(parser);
    }
    array_push(parser->arena, &parser->kernels, kernel);
    return kernel.function != NULL;
}

/* An integer argument of the function; false after an error. */
static bool integer_argument(RuleParser *parser, int *attr)
{
    Tokens *tokens = &parser->tokens;
    const Expr *argument = tokens->token->kind == TOKEN_NAME ? rule_integer_primary(tokens, parser) : NULL;
    if (!argument || argument->kind != EXPR_ATTR) {
        if (!diag_errors(parser->diag))
            RULE_ERROR(parser, tokens->token->at, "expected an integer parameter of the function, not %s", tokens_shown(tokens));
        return false;
    }
    *attr = argument->index;
    return true;
}

static bool tiles_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    return (parser->tiles = function_name(parser)) && tokens_expect(tokens, ":", "after the operator") &&
           integer_argument(parser, &parser->tiles_dim) && tokens_expect(tokens, ",", "after the dimension") &&
           integer_argument(parser, &parser->tiles_start);
}

static bool epilogue_clause(RuleParser *parser) { return (parser->epilogue = function_name(parser)) != NULL; }

static bool grad_clause(RuleParser *parser)
{
    parser->grad_at = parser->tokens.token->at;
    return (parser->grad = function_name(parser)) != NULL;
}

/* A clause is a list of items, or reads all between its brackets by itself. */
typedef struct Clause {
    const char *name;
    bool (*item)(RuleParser *parser);
    bool list;
} Clause;

static const Clause clauses[] = {{"replicate", replicate_item, true}, {"reduction", reduction_clause, false},
                                 {"offset", offset_item, true},       {"size", size_item, true},
                                 {"dtype", dtype_item, true},         {"shape", shape_clause, false},
                                 {"types", types_item, true},         {"linear", linear_item, true},
                                 {"inplace", inplace_item, true},     {"kernel", kernel_clause, false},
                                 {"requires", requires_item, true},   {"grad", grad_clause, false},
                                 {"body", rule_equations, false},     {"epilogue", epilogue_clause, false},
                                 {"tiles", tiles_clause, false},      {"operations", operations_clause, false},
                                 {"reads", reads_item, true}};
enum { CLAUSE_COUNT = sizeof clauses / sizeof *clauses };

static const Clause *find_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    const char *names[CLAUSE_COUNT];
    const char *name = tokens->token->text;
    for (int i = 0; i < CLAUSE_COUNT; i++) {
        names[i] = clauses[i].name;
        if (!strcmp(name, names[i]))
            return &clauses[i];
    }
    rule_unknown(parser, tokens->token->at, "a clause of a rule", name, names, CLAUSE_COUNT);
    return NULL;
}

static bool parse_clause(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, tokens->token->at, "expected an operator or a clause, not %s", tokens_shown(tokens));
        return false;
    }
    const Clause *clause = find_clause(parser);
    if (!clause)
        return false;
    tokens_next(tokens);
    if (!tokens_expect(tokens, "(", "after the clause's name"))
        return false;
    parser->linear_groups += clause->item == linear_item;
    do {
        if (!clause->item(parser))
            return false;
    } while (clause->list && tokens_take(tokens, ","));
    return tokens_expect(tokens, ")", "at the end of the clause");
}

void rule_clauses(RuleParser *parser)
{
    while (!tokens_end(&parser->tokens))
        if (!parse_clause(parser)) {
            rule_fail(parser);
            return;
        }
}
