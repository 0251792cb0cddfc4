#include "rule/expr.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Tokens *tokens;
    ExprPrimary *primary;
    void *context;
    int depth;
} Reader;

enum { DEPTH_MOST = 200 };

static const Expr *ternary(Reader *reader);

static const Expr *number(Reader *reader)
{
    Tokens *tokens = reader->tokens;
    const char *spelling = tokens->token->text;
    char *end;
    double value = strtod(spelling, &end);
    if (strspn(end, "fFlLuU") != strlen(end)) {
        diag_error(tokens->diag, tokens->token->at, "'%s' is not a number", spelling);
        return NULL;
    }
    tokens_next(tokens);
    return expr_number(tokens->arena, value, spelling);
}

static void report_function(Tokens *tokens, const char *name)
{
    const char *const *names = expr_function_names();
    int count = 0;
    while (names[count])
        count++;
    diag_error(tokens->diag, tokens->token->at,
               "a rule's body cannot call '%s'; it may call the functions of math.h such as expf and tanhf", name);
    tokens_suggest(tokens, tokens->token->at, name, names, count);
}

static const Expr *call(Reader *reader, const char *name, Position at)
{
    Tokens *tokens = reader->tokens;
    const Expr *args[3] = {0};
    int count = 0, arity = expr_function_arity(name);
    if (!tokens_expect(tokens, "(", "after the function's name"))
        return NULL;
    do {
        if (count == arity) {
            diag_error(tokens->diag, tokens->token->at, "%s takes %d argument%s", name, arity, arity == 1 ? "" : "s");
            return NULL;
        }
        if (!(args[count++] = ternary(reader)))
            return NULL;
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, ")", "after the arguments"))
        return NULL;
    if (count < arity) {
        diag_error(tokens->diag, at, "%s takes %d arguments", name, arity);
        return NULL;
    }
    return expr_call(tokens->arena, name, args, count);
}

static const Expr *name(Reader *reader)
{
    Tokens *tokens = reader->tokens;
    const char *spelling = tokens->token->text;
    if (!tokens_before(tokens, "(") || !strcmp(spelling, "size"))
        return reader->primary(tokens, reader->context);
    Position at = tokens->token->at;
    if (!expr_function_arity(spelling)) {
        report_function(tokens, spelling);
        return NULL;
    }
    tokens_next(tokens);
    return call(reader, spelling, at);
}

static const Expr *primary(Reader *reader)
{
    Tokens *tokens = reader->tokens;
    if (tokens_take(tokens, "(")) {
        const Expr *inner = ternary(reader);
        return inner && tokens_expect(tokens, ")", "after the expression") ? inner : NULL;
    }
    if (tokens->token->kind == TOKEN_NUMBER)
        return number(reader);
    if (tokens->token->kind == TOKEN_NAME)
        return name(reader);
    if (tokens_is(tokens, "?"))
        return reader->primary(tokens, reader->context);
    diag_error(tokens->diag, tokens->token->at, "expected an expression, not %s", tokens_shown(tokens));
    return NULL;
}

static const Expr *unary(Reader *reader)
{
    Tokens *tokens = reader->tokens;
    if (tokens_take(tokens, "+"))
        return unary(reader);
    if (!tokens_take(tokens, "-"))
        return primary(reader);
    if (++reader->depth > DEPTH_MOST) {
        diag_error(tokens->diag, tokens->token->at, "the expression is nested too deeply");
        return NULL;
    }
    const Expr *inner = unary(reader);
    reader->depth--;
    return inner ? expr_negative(tokens->arena, inner) : NULL;
}

typedef struct Operator {
    const char *sign;
    ExprKind kind;
    int level;
} Operator;

static const Operator operators[] = {{"==", EXPR_EQ, 1}, {"!=", EXPR_NE, 1}, {"<", EXPR_LT, 2},  {"<=", EXPR_LE, 2},
                                     {">", EXPR_GT, 2},  {">=", EXPR_GE, 2}, {"+", EXPR_ADD, 3}, {"-", EXPR_SUB, 3},
                                     {"*", EXPR_MUL, 4}, {"/", EXPR_DIV, 4}, {"%", EXPR_MOD, 4}};

static const Operator *operator_at(const Tokens *tokens, int level)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && tokens_is(tokens, operators[i].sign))
            return &operators[i];
    return NULL;
}

/* A node as written: nothing is simplified, so that a rule's text says what the expression is. */
static const Expr *as_written(Arena *arena, ExprKind kind, const Expr *a, const Expr *b, const Expr *c)
{
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = kind, .arg_count = c ? 3 : 2, .arg = {a, b, c}};
    return expr;
}

static const Expr *binary(Reader *reader, int level)
{
    if (level > 4)
        return unary(reader);
    const Expr *left = binary(reader, level + 1);
    const Operator *operator;
    while (left && (operator= operator_at(reader->tokens, level))) {
        tokens_next(reader->tokens);
        const Expr *right = binary(reader, level + 1);
        left = right ? as_written(reader->tokens->arena, operator->kind, left, right, NULL) : NULL;
    }
    return left;
}

static const Expr *branches(Reader *reader, const Expr *condition)
{
    const Expr *yes = ternary(reader);
    if (!yes || !tokens_expect(reader->tokens, ":", "between the two values of '? :'"))
        return NULL;
    const Expr *no = ternary(reader);
    return no ? as_written(reader->tokens->arena, EXPR_SELECT, condition, yes, no) : NULL;
}

static const Expr *ternary(Reader *reader)
{
    if (++reader->depth > DEPTH_MOST) {
        diag_error(reader->tokens->diag, reader->tokens->token->at, "the expression is nested too deeply");
        return NULL;
    }
    const Expr *expr = binary(reader, 1);
    if (expr && tokens_take(reader->tokens, "?"))
        expr = branches(reader, expr);
    reader->depth--;
    return expr;
}

const Expr *expr_parse(Tokens *tokens, ExprPrimary *primary_of, void *context)
{
    Reader reader = {.tokens = tokens, .primary = primary_of, .context = context};
    return ternary(&reader);
}
