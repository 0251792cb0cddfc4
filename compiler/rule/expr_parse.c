/* Parses expressions of rules by precedence. */
#include "rule/expr.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

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

static const Expr *number(Reader *reader) {
    Tokens *tokens = reader->tokens;
    const char *spelling = tokens->token->text;
    char *end;
    double value = strtod(spelling, &end);
    if (strspn(end, "fFlLuU") != strlen(end))
        return diag_error(tokens->diag, tokens->token->at, "'%s' is not a number", spelling), NULL;
    tokens_next(tokens);
    return expr_number(tokens->arena, value, spelling);
}

static void report_function(Tokens *tokens, const char *name) {
    const char *const *names = expr_function_names();
    int count = 0;
    while (names[count]) count++;
    diag_error(tokens->diag, tokens->token->at,
               "a rule's body cannot call '%s'; it may call the functions of math.h such as expf "
               "and tanhf",
               name);
    tokens_suggest(tokens, tokens->token->at, name, names, count);
}

static const Expr *call(Reader *reader, const char *name, Position at) {
    Tokens *tokens = reader->tokens;
    const Expr *args[3] = {0};
    int count = 0, arity = expr_function_arity(name);
    if (!tokens_expect(tokens, "(", "after the function's name")) return NULL;
    do {
        if (count == arity)
            return diag_error(tokens->diag, tokens->token->at, "%s takes %d argument%s", name,
                              arity, arity == 1 ? "" : "s"),
                   NULL;
        if (!(args[count++] = ternary(reader))) return NULL;
    } while (tokens_take(tokens, ","));
    if (!tokens_expect(tokens, ")", "after the arguments")) return NULL;
    if (count < arity)
        return diag_error(tokens->diag, at, "%s takes %d arguments", name, arity), NULL;
    return expr_call(tokens->arena, name, args, count);
}

static const Expr *name(Reader *reader) {
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

static const Expr *primary(Reader *reader) {
    Tokens *tokens = reader->tokens;
    if (tokens_take(tokens, "(")) {
        const Expr *inner = ternary(reader);
        return inner && tokens_expect(tokens, ")", "after the expression") ? inner : NULL;
    }
    if (tokens->token->kind == TOKEN_NUMBER) return number(reader);
    if (tokens->token->kind == TOKEN_NAME) return name(reader);
    if (tokens_is(tokens, "?")) return reader->primary(tokens, reader->context);
    diag_error(tokens->diag, tokens->token->at, "expected an expression, not %s",
               tokens_shown(tokens));
    return NULL;
}

static const Expr *unary(Reader *reader) {
    Tokens *tokens = reader->tokens;
    if (tokens_take(tokens, "+")) return unary(reader);
    if (!tokens_take(tokens, "-")) return primary(reader);
    if (++reader->depth > DEPTH_MOST)
        return diag_error(tokens->diag, tokens->token->at, "the expression is nested too deeply"),
               NULL;
    const Expr *inner = unary(reader);
    reader->depth--;
    return inner ? expr_negative(tokens->arena, inner) : NULL;
}

/* Returns whether the current token is an operator of this precedence; writes its kind. */
static bool is_operator(const Tokens *tokens, int level, ExprKind *kind) {
    for (*kind = EXPR_ADD; *kind <= EXPR_NE; ++*kind)
        if (expr_operators[*kind].level == level && tokens_is(tokens, expr_operators[*kind].sign))
            return true;
    return false;
}

/* Reads operators of this precedence and above. Does not simplify: the tree matches the text. */
static const Expr *binary(Reader *reader, int level) {
    if (level > 5) return unary(reader);
    const Expr *left = binary(reader, level + 1);
    ExprKind kind;
    while (left && is_operator(reader->tokens, level, &kind)) {
        tokens_next(reader->tokens);
        const Expr *right = binary(reader, level + 1);
        left = right ? expr_node(reader->tokens->arena, kind, left, right, NULL) : NULL;
    }
    return left;
}

static const Expr *branches(Reader *reader, const Expr *condition) {
    const Expr *yes = ternary(reader);
    if (!yes || !tokens_expect(reader->tokens, ":", "between the two values of '? :'")) return NULL;
    const Expr *no = ternary(reader);
    return no ? expr_node(reader->tokens->arena, EXPR_SELECT, condition, yes, no) : NULL;
}

static const Expr *ternary(Reader *reader) {
    if (++reader->depth > DEPTH_MOST)
        return diag_error(reader->tokens->diag, reader->tokens->token->at,
                          "the expression is nested too deeply"),
               NULL;
    const Expr *expr = binary(reader, 2);
    if (expr && tokens_take(reader->tokens, "?")) expr = branches(reader, expr);
    reader->depth--;
    return expr;
}

const Expr *expr_parse(Tokens *tokens, ExprPrimary *primary_of, void *context) {
    Reader reader = {.tokens = tokens, .primary = primary_of, .context = context};
    return ternary(&reader);
}
