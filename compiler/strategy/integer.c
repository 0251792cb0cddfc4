/* Parses integer expressions and lists of strategies. Functions return false after an error. */
#include "strategy/parser.h"

#include "syntax/lex.h"
#include "syntax/tokens.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 100 };

/* Reads to *value a number in C's notation; in a strategy that is not wanted, *value becomes 1. */
static bool parse_number(StrategyParser *parser, int64_t *value) {
    Tokens *tokens = parser->tokens;
    char *end;
    unsigned long long number = strtoull(tokens->token->text, &end, 0);
    if (end[strspn(end, "uUlL")] || number > INT64_MAX)
        return tokens_error(tokens, "\"%s\" is not an integer", tokens->token->text);
    *value = parser->skimmed ? 1 : (int64_t)number;
    tokens_next(tokens);
    return true;
}

static bool parse_constant(StrategyParser *parser, int64_t *value) {
    Tokens *tokens = parser->tokens;
    const StrategyNames *names = parser->names;
    *value = 1;
    if (!parser->skimmed &&
        (!names || !names->value || !names->value(names->state, tokens->token->text, value))) {
        return tokens_error(tokens, "\"%s\" is no integer constant of the model",
                            tokens->token->text);
    }
    tokens_next(tokens);
    return true;
}

bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value) {
    Tokens *tokens = parser->tokens;
    if (tokens->token->kind == TOKEN_NUMBER) return parse_number(parser, value);
    if (tokens->token->kind == TOKEN_NAME) return parse_constant(parser, value);
    if (!tokens_is(tokens, "(")) return tokens_unexpected(tokens, expected);
    if (parser->depth >= MOST_DEPTH) {
        return tokens_error(tokens, "this expression has more than %d nested parentheses",
                            MOST_DEPTH);
    }
    tokens_next(tokens);
    parser->depth++;
    bool good = strategy_integer(parser, value) && tokens_expect(tokens, ")", NULL);
    parser->depth--;
    return good;
}

static bool parse_unary(StrategyParser *parser, int64_t *value) {
    Tokens *tokens = parser->tokens;
    bool negative = false;
    while (tokens_is(tokens, "-") || tokens_is(tokens, "+")) {
        negative ^= tokens_is(tokens, "-");
        tokens_next(tokens);
    }
    if (!strategy_primary(parser, "an integer", value)) return false;
    *value = negative && !parser->skimmed ? -*value : *value;
    return true;
}

/* Sets *value to a `sign` b. Returns false on overflow, for a divisor 0 or -1, or a bad shift. */
static bool compute(const char *sign, int64_t a, int64_t b, int64_t *value) {
    switch (*sign) {
    case '+': return !__builtin_add_overflow(a, b, value);
    case '-': return !__builtin_sub_overflow(a, b, value);
    case '*': return !__builtin_mul_overflow(a, b, value);
    default: break;
    }
    bool shift = *sign == '<' || *sign == '>';
    if (shift ? a < 0 || b < 0 || b > 62 || (*sign == '<' && a > INT64_MAX >> b)
              : b == 0 || b == -1)
        return false;
    *value = *sign == '/' ? a / b : *sign == '%' ? a % b : *sign == '<' ? a << b : a >> b;
    return true;
}

/* Returns the precedence of the binary operator at the current token; 0: there is none. */
static int precedence(const StrategyParser *parser) {
    const Tokens *tokens = parser->tokens;
    return tokens_is(tokens, "*") || tokens_is(tokens, "/") || tokens_is(tokens, "%") ? 3
           : tokens_is(tokens, "+") || tokens_is(tokens, "-")                         ? 2
           : tokens_is(tokens, "<<") || tokens_is(tokens, ">>")                       ? 1
                                                                                      : 0;
}

static bool parse_binary(StrategyParser *parser, int level, int64_t *value) {
    Tokens *tokens = parser->tokens;
    if (!parse_unary(parser, value)) return false;
    for (int binds; (binds = precedence(parser)) >= level;) {
        Token sign = *tokens->token;
        int64_t right;
        tokens_next(tokens);
        if (!parse_binary(parser, binds + 1, &right)) return false;
        if (!parser->skimmed && !compute(sign.text, *value, right, value)) {
            diag_error(tokens->diag, sign.at, "this \"%s\" has no value that fits 64 bits",
                       sign.text);
            return false;
        }
    }
    return true;
}

bool strategy_integer(StrategyParser *parser, int64_t *value) {
    return parse_binary(parser, 1, value);
}

bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most,
                      int64_t *value) {
    Tokens *tokens = parser->tokens;
    Position at = tokens->token->at;
    if (!strategy_integer(parser, value)) return false;
    if (*value < least || *value > most) {
        diag_error(tokens->diag, at, "%s is %lld, but must be from %lld to %lld", what,
                   (long long)*value, (long long)least, (long long)most);
        return false;
    }
    return true;
}

bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to) {
    Tokens *tokens = parser->tokens;
    if (!tokens_expect(tokens, "(", NULL)) return false;
    do
        if (!item(parser, to)) return false;
    while (tokens_take(tokens, ","));
    return tokens_take(tokens, ")") || tokens_unexpected(tokens, "\",\" or \")\"");
}

bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last) {
    Tokens *tokens = parser->tokens;
    Position at = tokens->token->at;
    if (!strategy_primary(parser, what, first)) return false;
    *last = *first;
    if (tokens_take(tokens, "-") && !strategy_primary(parser, what, last)) return false;
    if (*first < 0) diag_error(tokens->diag, at, "%s cannot be negative", what);
    else if (*last < *first)
        diag_error(tokens->diag, at, "the range %lld-%lld is empty: its end is below its start",
                   (long long)*first, (long long)*last);
    return *first >= 0 && *last >= *first;
}
