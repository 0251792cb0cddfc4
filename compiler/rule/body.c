/* The clause `body`: equations. */
#include "rule/parse.h"

#include <string.h>

/* The value `name`: a result, or behind the results a local one; -1 when there is none. */
static int find_value(const RuleParser *parser, const char *name)
{
    int result = rule_result(parser, name);
    for (int i = 0; result < 0 && i < parser->locals.count; i++)
        if (!strcmp(parser->locals.at[i].name, name))
            return parser->results.count + i;
    return result;
}

static const Access *value_access(const RuleParser *parser, int value)
{
    return value < parser->results.count ? &parser->results.at[value] : &parser->locals.at[value - parser->results.count];
}

static bool has_equation(const RuleParser *parser, int value)
{
    for (int i = 0; i < parser->equations.count; i++)
        if (parser->equations.at[i].value == value)
            return true;
    return false;
}

/* NAME[indices] with the indices that the value has. */
static bool read_access(RuleParser *parser, Access *access)
{
    Tokens *tokens = &parser->tokens;
    Position at = tokens->token->at;
    *access = (Access){.name = tokens->token->text, .inplace = -1};
    if (tokens->token->kind != TOKEN_NAME) {
        RULE_ERROR(parser, at, "expected a value such as y[i], not %s", tokens_shown(tokens));
        return false;
    }
    tokens_next(tokens);
    int factors = parser->factors.count;
    if (!rule_dims(parser, access, at))
        return false;
    if (parser->factors.count == factors)
        return true;
    RULE_ERROR(parser, at, "'%s' has the factor '%s', which no operand and no result has", access->name, parser->factors.at[factors].name);
    return false;
}

static bool check_dims(RuleParser *parser, const Access *access, const Access *known, Position at)
{
    if (rule_dims_equal(access, known))
        return true;
    RULE_ERROR(parser, at, "'%s' is written with two different lists of indices", access->name);
    return false;
}

const Expr *rule_value_primary(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    Position at = tokens->token->at;
    int value = find_value(parser, tokens->token->text);
    Access access;
    if (!read_access(parser, &access) || !check_dims(parser, &access, value_access(parser, value), at))
        return NULL;
    if (has_equation(parser, value))
        return expr_leaf(parser->arena, EXPR_RESULT, value);
    RULE_ERROR(parser, at, "'%s' is used before its equation", access.name);
    return NULL;
}

bool rule_is_value(const RuleParser *parser, const char *name) { return parser->in_equations && find_value(parser, name) >= 0; }

/* The value that an equation gives: a result, or a new local one; -1 after an error. */
static int left_side(RuleParser *parser)
{
    Position at = parser->tokens.token->at;
    Access access;
    if (!read_access(parser, &access))
        return -1;
    int value = find_value(parser, access.name);
    if (value >= 0 && has_equation(parser, value)) {
        RULE_ERROR(parser, at, "'%s' has two equations", access.name);
        return -1;
    }
    if (value >= 0)
        return check_dims(parser, &access, value_access(parser, value), at) ? value : -1;
    if (rule_operand(parser, access.name) >= 0) {
        RULE_ERROR(parser, at, "'%s' is an operand; an equation gives a result or a new value", access.name);
        return -1;
    }
    array_push(parser->arena, &parser->locals, access);
    return parser->results.count + parser->locals.count - 1;
}

/* The right side comes before the value is known: it cannot use itself. */
static bool parse_equation(RuleParser *parser)
{
    Tokens *tokens = &parser->tokens;
    int value = left_side(parser);
    if (value < 0 || !tokens_expect(tokens, "=", "after the value"))
        return false;
    const Expr *expr = expr_parse(tokens, rule_body_primary, parser);
    if (expr)
        array_push(parser->arena, &parser->equations, (RuleEquation){value, expr});
    return expr != NULL;
}

bool rule_equations(RuleParser *parser)
{
    parser->in_equations = true;
    bool good;
    do
        good = parse_equation(parser);
    while (good && tokens_take(&parser->tokens, ";"));
    parser->in_equations = false;
    return good;
}

/* ---- what must hold of them ---- */

/* Whether the left side of every equation has the factor. */
static bool in_every_value(const RuleParser *parser, int factor)
{
    for (int i = 0; i < parser->equations.count; i++)
        if (!access_has(value_access(parser, parser->equations.at[i].value), factor))
            return false;
    return true;
}

/* A value has all factors of a row, or none of them. */
static bool check_row(RuleParser *parser, const Access *access, Position start)
{
    int with = 0, factors = 0;
    for (int f = 0; f < parser->factors.count; f++)
        if (!in_every_value(parser, f)) {
            factors++;
            with += access_has(access, f);
        }
    if (!with || with == factors)
        return true;
    RULE_ERROR(parser, start, "the value '%s' has some of the factors that other values lack; it must have all of them or none",
               access->name);
    return false;
}

void rule_check_equations(RuleParser *parser, Position start)
{
    if (parser->kind == RULE_BODY || parser->kind == RULE_VIEW) {
        RULE_ERROR(parser, start, "the clause body belongs to a rule of the form y[i..] = name(x[i..])");
        return;
    }
    for (int r = 0; r < parser->results.count; r++)
        if (!has_equation(parser, r))
            RULE_ERROR(parser, start, "the clause body has no equation for the result '%s'", parser->results.at[r].name);
    for (int i = 0; i < parser->equations.count; i++)
        if (!check_row(parser, value_access(parser, parser->equations.at[i].value), start))
            return;
    for (int f = 0; f < parser->factors.count; f++)
        if (!in_every_value(parser, f) && !parser->factors.at[f].replicate)
            RULE_ERROR(parser, start, "the factor '%s' goes along the rows of the clause body, which may not be cut: say replicate(%s)",
                       parser->factors.at[f].name, parser->factors.at[f].name);
}
