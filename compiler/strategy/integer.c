#include "strategy/parser.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 100 };

/* ---- tokens ---- */

bool strategy_reads(const StrategyParser *parser, const char *text)
{
    return parser->token->kind <= TOKEN_PUNCT && !strcmp(parser->token->text, text);
}

bool strategy_line_end(const StrategyParser *parser) { return parser->token->kind >= TOKEN_LINE; }

void strategy_next(StrategyParser *parser)
{
    if (!strategy_line_end(parser))
        parser->token++;
}

bool strategy_accept(StrategyParser *parser, const char *text)
{
    bool found = strategy_reads(parser, text);
    if (found)
        strategy_next(parser);
    return found;
}

/* The current token as messages show it. */
static const char *found(const StrategyParser *parser)
{
    return strategy_line_end(parser) ? "the end of the line" : arena_format(parser->arena, "\"%s\"", parser->token->text);
}

/* Reports that the current token is not what was expected; quiet where the lexer has complained already. False. */
bool strategy_unexpected(StrategyParser *parser, const char *expected)
{
    if (parser->token->kind != TOKEN_BAD)
        diag_error(parser->diag, parser->token->at, "expected %s, found %s", expected, found(parser));
    return false;
}

bool strategy_expect(StrategyParser *parser, const char *text)
{
    return strategy_accept(parser, text) || strategy_unexpected(parser, arena_format(parser->arena, "\"%s\"", text));
}

/* A name, or NULL after an error. */
const char *strategy_name(StrategyParser *parser, const char *expected)
{
    if (parser->token->kind != TOKEN_NAME) {
        strategy_unexpected(parser, expected);
        return NULL;
    }
    const char *name = parser->token->text;
    strategy_next(parser);
    return name;
}

/* "did you mean": a note when one of the words is close to what stands at `at`. */
void strategy_suggest(StrategyParser *parser, Position at, const char *word, const char *const *words, int count)
{
    const char *closest = diag_closest(word, words, count);
    if (closest)
        diag_note(parser->diag, at, "did you mean \"%s\"?", closest);
}

/* ---- integer expressions ---- */

/* The value of a number token as C reads it. */
static bool parse_number(StrategyParser *parser, int64_t *value)
{
    char *end;
    unsigned long long number = strtoull(parser->token->text, &end, 0);
    if (end[strspn(end, "uUlL")] || number > INT64_MAX) {
        diag_error(parser->diag, parser->token->at, "\"%s\" is not an integer", parser->token->text);
        return false;
    }
    *value = (int64_t)number;
    strategy_next(parser);
    return true;
}

static bool parse_constant(StrategyParser *parser, int64_t *value)
{
    const StrategyNames *names = parser->names;
    if (!names || !names->value || !names->value(names->state, parser->token->text, value)) {
        diag_error(parser->diag, parser->token->at, "\"%s\" is no integer constant of the model", parser->token->text);
        return false;
    }
    strategy_next(parser);
    return true;
}

/* A number, a name, or an expression in parentheses; `expected` says what it stands for. */
bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value)
{
    if (parser->token->kind == TOKEN_NUMBER)
        return parse_number(parser, value);
    if (parser->token->kind == TOKEN_NAME)
        return parse_constant(parser, value);
    if (!strategy_reads(parser, "("))
        return strategy_unexpected(parser, expected);
    if (parser->depth >= MOST_DEPTH) {
        diag_error(parser->diag, parser->token->at, "this expression has more than %d nested parentheses", MOST_DEPTH);
        return false;
    }
    strategy_next(parser);
    parser->depth++;
    bool good = strategy_integer(parser, value) && strategy_expect(parser, ")");
    parser->depth--;
    return good;
}

static bool parse_unary(StrategyParser *parser, int64_t *value)
{
    bool negative = false;
    while (strategy_reads(parser, "-") || strategy_reads(parser, "+")) {
        negative ^= strategy_reads(parser, "-");
        strategy_next(parser);
    }
    if (!strategy_primary(parser, "an integer", value))
        return false;
    *value = negative ? -*value : *value;
    return true;
}

/* a OPERATOR b; false where C leaves it undefined. */
static bool compute(const char *operator, int64_t a, int64_t b, int64_t *value)
{
    switch (*operator) {
    case '+': return !__builtin_add_overflow(a, b, value);
    case '-': return !__builtin_sub_overflow(a, b, value);
    case '*': return !__builtin_mul_overflow(a, b, value);
    default: break;
    }
    bool shift = *operator== '<' || * operator== '>';
    if (shift ? a < 0 || b < 0 || b > 62 || (*operator== '<' && a> INT64_MAX>> b) : b == 0 || b == -1)
        return false;
    *value = *operator== '/' ? a / b : * operator== '%' ? a % b : * operator== '<' ? a << b : a>> b;
    return true;
}

/* How tightly the binary operator at the current token binds; 0: there is none. */
static int precedence(const StrategyParser *parser)
{
    return strategy_reads(parser, "*") || strategy_reads(parser, "/") || strategy_reads(parser, "%") ? 3
           : strategy_reads(parser, "+") || strategy_reads(parser, "-")                              ? 2
           : strategy_reads(parser, "<<") || strategy_reads(parser, ">>")                            ? 1
                                                                                                     : 0;
}

static bool parse_binary(StrategyParser *parser, int level, int64_t *value)
{
    if (!parse_unary(parser, value))
        return false;
    for (int binds; (binds = precedence(parser)) >= level;) {
        Token operator= * parser->token;
        int64_t right;
        strategy_next(parser);
        if (!parse_binary(parser, binds + 1, &right))
            return false;
        if (!compute(operator.text, *value, right, value)) {
            diag_error(parser->diag, operator.at, "this \"%s\" has no value that fits 64 bits", operator.text);
            return false;
        }
    }
    return true;
}

bool strategy_integer(StrategyParser *parser, int64_t *value) { return parse_binary(parser, 1, value); }

/* An expression between `least` and `most`; `what` names it in messages. */
bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most, int64_t *value)
{
    Position at = parser->token->at;
    if (!strategy_integer(parser, value))
        return false;
    if (*value < least || *value > most) {
        diag_error(parser->diag, at, "%s is %lld, but must be from %lld to %lld", what, (long long)*value, (long long)least,
                   (long long)most);
        return false;
    }
    return true;
}

/* ( item { , item } ) */
bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to)
{
    if (!strategy_expect(parser, "("))
        return false;
    do
        if (!item(parser, to))
            return false;
    while (strategy_accept(parser, ","));
    return strategy_accept(parser, ")") || strategy_unexpected(parser, "\",\" or \")\"");
}

/* a or a-b: an inclusive range. */
bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last)
{
    Position at = parser->token->at;
    if (!strategy_primary(parser, what, first))
        return false;
    *last = *first;
    if (strategy_accept(parser, "-") && !strategy_primary(parser, what, last))
        return false;
    if (*first < 0)
        diag_error(parser->diag, at, "%s cannot be negative", what);
    else if (*last < *first)
        diag_error(parser->diag, at, "the range %lld-%lld is empty: its end is below its start", (long long)*first, (long long)*last);
    return *first >= 0 && *last >= *first;
}
