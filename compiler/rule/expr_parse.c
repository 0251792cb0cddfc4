#include "rule/expr.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Lexer *lexer;
    ExprPrimary *primary;
    void *context;
    int depth;
} Reader;

enum { DEPTH_MOST = 200 };

static const Expr *ternary(Reader *reader);

static const Expr *number(Reader *reader)
{
    Lexer *lexer = reader->lexer;
    char *spelling = lex_spelling(lexer), *end;
    double value = strtod(spelling, &end);
    if (strspn(end, "fFlLuU") != strlen(end)) {
        diag_error(lexer->diag, lexer->token.at, "'%s' is not a number", spelling);
        return NULL;
    }
    lex_next(lexer);
    return expr_number(lexer->arena, value, spelling);
}

static void report_function(Lexer *lexer, const char *name)
{
    const char *const *names = expr_function_names();
    int count = 0;
    while (names[count])
        count++;
    const char *closest = diag_closest(name, names, count);
    diag_error(lexer->diag, lexer->token.at, "a rule's body cannot call '%s'; it may call the functions of math.h such as expf and tanhf",
               name);
    if (closest)
        diag_note(lexer->diag, lexer->token.at, "did you mean '%s'?", closest);
}

static const Expr *call(Reader *reader, const char *name, Position at)
{
    Lexer *lexer = reader->lexer;
    const Expr *args[3] = {0};
    int count = 0, arity = expr_function_arity(name);
    if (!lex_expect(lexer, "(", "after the function's name"))
        return NULL;
    do {
        if (count == arity) {
            diag_error(lexer->diag, lexer->token.at, "%s takes %d argument%s", name, arity, arity == 1 ? "" : "s");
            return NULL;
        }
        if (!(args[count++] = ternary(reader)))
            return NULL;
    } while (lex_take(lexer, ","));
    if (!lex_expect(lexer, ")", "after the arguments"))
        return NULL;
    if (count < arity) {
        diag_error(lexer->diag, at, "%s takes %d arguments", name, arity);
        return NULL;
    }
    return expr_call(lexer->arena, name, args, count);
}

/* Whether the current name is followed by an opening bracket of a call. */
static bool called(const Lexer *lexer)
{
    const char *after = lexer->next;
    while (*after == ' ' || *after == '\t')
        after++;
    return *after == '(';
}

static const Expr *name(Reader *reader)
{
    Lexer *lexer = reader->lexer;
    char *spelling = lex_spelling(lexer);
    if (!called(lexer) || !strcmp(spelling, "size"))
        return reader->primary(lexer, reader->context);
    Position at = lexer->token.at;
    if (!expr_function_arity(spelling)) {
        report_function(lexer, spelling);
        return NULL;
    }
    lex_next(lexer);
    return call(reader, spelling, at);
}

static const Expr *primary(Reader *reader)
{
    Lexer *lexer = reader->lexer;
    if (lex_take(lexer, "(")) {
        const Expr *inner = ternary(reader);
        return inner && lex_expect(lexer, ")", "after the expression") ? inner : NULL;
    }
    if (lexer->token.kind == TOKEN_NUMBER)
        return number(reader);
    if (lexer->token.kind == TOKEN_NAME)
        return name(reader);
    if (lex_is(lexer, "?"))
        return reader->primary(lexer, reader->context);
    diag_error(lexer->diag, lexer->token.at, "expected an expression, not %s", lex_shown(lexer));
    return NULL;
}

static const Expr *unary(Reader *reader)
{
    Lexer *lexer = reader->lexer;
    if (lex_take(lexer, "+"))
        return unary(reader);
    if (!lex_take(lexer, "-"))
        return primary(reader);
    if (++reader->depth > DEPTH_MOST) {
        diag_error(lexer->diag, lexer->token.at, "the expression is nested too deeply");
        return NULL;
    }
    const Expr *inner = unary(reader);
    reader->depth--;
    return inner ? expr_negative(lexer->arena, inner) : NULL;
}

typedef struct Operator {
    const char *sign;
    ExprKind kind;
    int level;
} Operator;

static const Operator operators[] = {{"==", EXPR_EQ, 1}, {"!=", EXPR_NE, 1}, {"<", EXPR_LT, 2},  {"<=", EXPR_LE, 2},
                                     {">", EXPR_GT, 2},  {">=", EXPR_GE, 2}, {"+", EXPR_ADD, 3}, {"-", EXPR_SUB, 3},
                                     {"*", EXPR_MUL, 4}, {"/", EXPR_DIV, 4}, {"%", EXPR_MOD, 4}};

static const Operator *operator_at(const Lexer *lexer, int level)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && lex_is(lexer, operators[i].sign))
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
    while (left && (operator= operator_at(reader->lexer, level))) {
        lex_next(reader->lexer);
        const Expr *right = binary(reader, level + 1);
        left = right ? as_written(reader->lexer->arena, operator->kind, left, right, NULL) : NULL;
    }
    return left;
}

static const Expr *branches(Reader *reader, const Expr *condition)
{
    const Expr *yes = ternary(reader);
    if (!yes || !lex_expect(reader->lexer, ":", "between the two values of '? :'"))
        return NULL;
    const Expr *no = ternary(reader);
    return no ? as_written(reader->lexer->arena, EXPR_SELECT, condition, yes, no) : NULL;
}

static const Expr *ternary(Reader *reader)
{
    if (++reader->depth > DEPTH_MOST) {
        diag_error(reader->lexer->diag, reader->lexer->token.at, "the expression is nested too deeply");
        return NULL;
    }
    const Expr *expr = binary(reader, 1);
    if (expr && lex_take(reader->lexer, "?"))
        expr = branches(reader, expr);
    reader->depth--;
    return expr;
}

const Expr *expr_parse(Lexer *lexer, ExprPrimary *primary_of, void *context)
{
    Reader reader = {.lexer = lexer, .primary = primary_of, .context = context};
    return ternary(&reader);
}
