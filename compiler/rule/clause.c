/* The clauses of a rule. */
#include "rule/parse.h"

#include <string.h>

/* The factor named by the current token; -1 after an error. `..` after it may be written. */
static int clause_factor(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    if (lexer->token.kind != TOKEN_NAME) {
        RULE_ERROR(parser, lexer->token.at, "expected a factor, not %s", lex_shown(lexer));
        return -1;
    }
    char *name = lex_spelling(lexer);
    int factor = rule_factor(parser, name);
    if (factor < 0) {
        rule_unknown_factor(parser, lexer->token.at, name);
        return -1;
    }
    lex_next(lexer);
    lex_take(lexer, "..");
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
    Lexer *lexer = &parser->lexer;
    Reduction reduction = REDUCE_NONE;
    do {
        const char *after = lexer->next + strspn(lexer->next, " \t");
        if (lex_is(lexer, "+") || (lex_is(lexer, "max") && *after == ':')) {
            reduction = lex_is(lexer, "+") ? REDUCE_SUM : REDUCE_MAX;
            lex_next(lexer);
            if (!lex_expect(lexer, ":", "after the reduction's operator"))
                return false;
        }
        if (reduction == REDUCE_NONE) {
            RULE_ERROR(parser, lexer->token.at, "expected '+:' or 'max:' before the factor, not %s", lex_shown(lexer));
            return false;
        }
        int factor = clause_factor(parser);
        if (factor < 0)
            return false;
        parser->factors.at[factor].reduction = reduction;
    } while (lex_take(lexer, ","));
    return true;
}

/* f: expression, or f: +m. */
static bool size_item(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    int factor = clause_factor(parser);
    if (factor < 0 || !lex_expect(lexer, ":", "after the factor"))
        return false;
    const Expr *size;
    if (lex_take(lexer, "+")) {
        int summed = parser->size_sum_of = clause_factor(parser);
        size = summed < 0 ? NULL : expr_leaf(parser->arena, EXPR_SIZE, summed);
    } else {
        size = expr_parse(lexer, rule_integer_primary, parser);
    }
    parser->factors.at[factor].size = size;
    return size != NULL;
}

/* An argument that is a number, or size(f). */
static const Expr *number_primary(Lexer *lexer, void *context)
{
    RuleParser *parser = context;
    int attr = lexer->token.kind == TOKEN_NAME ? rule_attr(parser, lex_spelling(lexer), PARAM_FLOAT, PARAM_FLOAT) : -1;
    if (attr < 0)
        return rule_integer_primary(lexer, context);
    lex_next(lexer);
    return expr_leaf(parser->arena, EXPR_ATTR, attr);
}

static bool requires_item(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    const char *start = lexer->token.start;
    Position at = lexer->token.at;
    const Expr *condition = expr_parse(lexer, number_primary, parser);
    if (condition && expr_calls(condition))
        RULE_ERROR(parser, at, "a condition of the clause requires calls no function");
    if (!condition || parser->failed)
        return false;
    char *text = arena_format(parser->arena, "%.*s", (int)(lexer->token.start - start), start);
    for (size_t length = strlen(text); length && strchr(" \t\n\\", text[length - 1]);)
        text[--length] = 0;
    array_push(parser->arena, &parser->requirements, (Requirement){condition, rule_normalised(parser->arena, text)});
    return true;
}

/* The operand or result that the current token names; -1 after an error. */
static int clause_access(RuleParser *parser, bool result)
{
    Lexer *lexer = &parser->lexer;
    if (lexer->token.kind != TOKEN_NAME) {
        RULE_ERROR(parser, lexer->token.at, "expected %s, not %s", result ? "a result" : "an operand", lex_shown(lexer));
        return -1;
    }
    char *name = lex_spelling(lexer);
    int index = result ? rule_result(parser, name) : rule_operand(parser, name);
    if (index < 0) {
        int count = result ? parser->results.count : parser->operands.count;
        const char **names = arena_array(parser->arena, const char *, count + 1);
        for (int i = 0; i < count; i++)
            names[i] = result ? parser->results.at[i].name : parser->operands.at[i].name;
        rule_unknown(parser, lexer->token.at, result ? "a result of the rule" : "an operand of the rule", name, names, count);
        return -1;
    }
    lex_next(lexer);
    return index;
}

/* The element type that the current token names; -1 when it names none. */
static int named_dtype(const RuleParser *parser)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        if (lex_is(&parser->lexer, dtype_name((DType)i)))
            return i;
    return -1;
}

static bool unknown_element(RuleParser *parser)
{
    const char **names = arena_array(parser->arena, const char *, DTYPE_COUNT + 2 + parser->operands.count);
    int count = 0;
    for (; count < DTYPE_COUNT; count++)
        names[count] = dtype_name((DType)count);
    names[count++] = "wide";
    names[count++] = "integer";
    for (int i = 0; i < parser->operands.count; i++)
        names[count++] = parser->operands.at[i].name;
    rule_unknown(parser, parser->lexer.token.at, "an element type, nor an operand, nor a parameter of type ht_dtype",
                 lex_spelling(&parser->lexer), names, count);
    return false;
}

/* What stands behind the colon of the clause dtype. */
static bool parse_element(RuleParser *parser, Element *element, bool of_operand)
{
    char *name = lex_spelling(&parser->lexer);
    int dtype = named_dtype(parser), attr = rule_attr(parser, name, PARAM_DTYPE, PARAM_DTYPE), operand = rule_operand(parser, name);
    if (dtype >= 0)
        *element = (Element){ELEMENT_FIXED, dtype};
    else if (attr >= 0)
        *element = (Element){ELEMENT_ARGUMENT, attr};
    else if (operand >= 0)
        *element = (Element){ELEMENT_OPERAND, operand};
    else if (lex_is(&parser->lexer, "wide"))
        *element = (Element){ELEMENT_WIDE, 0};
    else if (of_operand && lex_is(&parser->lexer, "integer"))
        *element = (Element){ELEMENT_INTEGER, 0};
    else
        return unknown_element(parser);
    lex_next(&parser->lexer);
    return true;
}

/* The operand or result that the current token names; NULL after an error. */
static Access *clause_tensor(RuleParser *parser)
{
    int result = rule_result(parser, lex_spelling(&parser->lexer));
    int index = result >= 0 ? clause_access(parser, true) : clause_access(parser, false);
    return index < 0 ? NULL : result >= 0 ? &parser->results.at[index] : &parser->operands.at[index];
}

/* The value of the clause `body` that the current token names, which is no result; NULL when it names none. */
static Access *clause_local(RuleParser *parser)
{
    for (int i = 0; i < parser->locals.count; i++)
        if (lex_is(&parser->lexer, parser->locals.at[i].name))
            return &parser->locals.at[i];
    return NULL;
}

/* The type of a value in between: one that is fixed. */
static bool parse_fixed(RuleParser *parser, Element *element)
{
    if (named_dtype(parser) >= 0)
        return parse_element(parser, element, false);
    RULE_ERROR(parser, parser->lexer.token.at, "expected one of f32, bf16, f64, i32, i64, not %s: the value is no result",
               lex_shown(&parser->lexer));
    return false;
}

static bool dtype_item(RuleParser *parser)
{
    Access *local = clause_local(parser);
    if (local) {
        lex_next(&parser->lexer);
        return lex_expect(&parser->lexer, ":", "after the value") && parse_fixed(parser, &local->element);
    }
    bool of_operand = rule_result(parser, lex_spelling(&parser->lexer)) < 0;
    Access *access = clause_tensor(parser);
    return access && lex_expect(&parser->lexer, ":", "after the tensor") && parse_element(parser, &access->element, of_operand);
}

static bool types_item(RuleParser *parser)
{
    int dtype = named_dtype(parser);
    if (dtype < 0) {
        RULE_ERROR(parser, parser->lexer.token.at, "expected one of f32, bf16, f64, i32, i64, not %s", lex_shown(&parser->lexer));
        return false;
    }
    parser->types |= 1u << dtype;
    lex_next(&parser->lexer);
    return true;
}

static bool inplace_item(RuleParser *parser)
{
    int result = clause_access(parser, true);
    if (result < 0 || !lex_expect(&parser->lexer, ":", "after the result"))
        return false;
    int operand = clause_access(parser, false);
    if (operand >= 0)
        parser->results.at[result].inplace = operand;
    return operand >= 0;
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
    Lexer *lexer = &parser->lexer;
    parser->shape_at = lexer->token.at;
    char *name = lex_spelling(lexer);
    parser->shape_attr = rule_attr(parser, name, PARAM_SHAPE, PARAM_SHAPE);
    if (parser->shape_attr < 0) {
        rule_unknown(parser, lexer->token.at, "a parameter of type ht_dims", name, NULL, 0);
        return false;
    }
    lex_next(lexer);
    return true;
}

/* The name of a C function; NULL after an error. */
static const char *function_name(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    if (lexer->token.kind != TOKEN_NAME) {
        RULE_ERROR(parser, lexer->token.at, "expected the name of a C function, not %s", lex_shown(lexer));
        return NULL;
    }
    const char *name = lex_spelling(lexer);
    lex_next(lexer);
    return name;
}

/* kernel(f) or kernel(BACKEND: f); which back ends there are is for others to know. */
static bool kernel_clause(RuleParser *parser)
{
    RuleKernel kernel = {.at = parser->lexer.token.at};
    kernel.function = function_name(parser);
    if (kernel.function && lex_take(&parser->lexer, ":")) {
        kernel = (RuleKernel){.backend = kernel.function, .backend_at = kernel.at, .at = parser->lexer.token.at};
        kernel.function = function_name(parser);
    }
    array_push(parser->arena, &parser->kernels, kernel);
    return kernel.function != NULL;
}

/* An integer argument of the function; false after an error. */
static bool integer_argument(RuleParser *parser, int *attr)
{
    Lexer *lexer = &parser->lexer;
    const Expr *argument = lexer->token.kind == TOKEN_NAME ? rule_integer_primary(lexer, parser) : NULL;
    if (!argument || argument->kind != EXPR_ATTR) {
        if (!diag_errors(parser->diag))
            RULE_ERROR(parser, lexer->token.at, "expected an integer parameter of the function, not %s", lex_shown(lexer));
        return false;
    }
    *attr = argument->index;
    return true;
}

static bool tiles_clause(RuleParser *parser)
{
    return (parser->tiles = function_name(parser)) && lex_expect(&parser->lexer, ":", "after the operator") &&
           integer_argument(parser, &parser->tiles_dim) && lex_expect(&parser->lexer, ",", "after the dimension") &&
           integer_argument(parser, &parser->tiles_start);
}

static bool epilogue_clause(RuleParser *parser) { return (parser->epilogue = function_name(parser)) != NULL; }

static bool grad_clause(RuleParser *parser)
{
    parser->grad_at = parser->lexer.token.at;
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
                                 {"tiles", tiles_clause, false}};
enum { CLAUSE_COUNT = sizeof clauses / sizeof *clauses };

static const Clause *find_clause(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    const char *names[CLAUSE_COUNT];
    char *name = lex_spelling(lexer);
    for (int i = 0; i < CLAUSE_COUNT; i++) {
        names[i] = clauses[i].name;
        if (!strcmp(name, names[i]))
            return &clauses[i];
    }
    rule_unknown(parser, lexer->token.at, "a clause of a rule", name, names, CLAUSE_COUNT);
    return NULL;
}

static bool parse_clause(RuleParser *parser)
{
    Lexer *lexer = &parser->lexer;
    if (lexer->token.kind != TOKEN_NAME) {
        RULE_ERROR(parser, lexer->token.at, "expected an operator or a clause, not %s", lex_shown(lexer));
        return false;
    }
    const Clause *clause = find_clause(parser);
    if (!clause)
        return false;
    lex_next(lexer);
    if (!lex_expect(lexer, "(", "after the clause's name"))
        return false;
    parser->linear_groups += clause->item == linear_item;
    do {
        if (!clause->item(parser))
            return false;
    } while (clause->list && lex_take(lexer, ","));
    return lex_expect(lexer, ")", "at the end of the clause");
}

void rule_clauses(RuleParser *parser)
{
    while (parser->lexer.token.kind != TOKEN_END)
        if (!parse_clause(parser)) {
            rule_fail(parser);
            return;
        }
}
