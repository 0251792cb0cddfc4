/* Steps of parsers over tokens, and their errors. */
#include "syntax/tokens.h"

#include "syntax/lex.h"

#include <stdarg.h>

Tokens tokens_of(Arena *arena, Diag *diag, Position at, const char *text) {
    Lexer lexer = lex_begin(arena, diag, at, text);
    TokenList list = {0};
    lex_rest(&lexer, &list);
    return (Tokens){.arena = arena, .diag = diag, .token = list.at};
}

bool tokens_end(const Tokens *tokens) { return token_ends(tokens->token); }

void tokens_next(Tokens *tokens) { tokens->token += !tokens_end(tokens); }

void tokens_next_line(Tokens *tokens) {
    while (!tokens_end(tokens)) tokens_next(tokens);
    tokens->token += tokens->token->kind == TOKEN_LINE;
}

bool tokens_is(const Tokens *tokens, const char *text) { return token_is(tokens->token, text); }

bool tokens_take(Tokens *tokens, const char *text) {
    bool is = tokens_is(tokens, text);
    tokens->token += is;
    return is;
}

bool tokens_before(const Tokens *tokens, const char *text) {
    return !tokens_end(tokens) && token_is(tokens->token + 1, text);
}

/* Returns a text in the quotes of messages: "text" if `found` is set, else 'text'. */
static const char *quoted(const Tokens *tokens, const char *text) {
    return arena_format(tokens->arena, tokens->found ? "\"%s\"" : "'%s'", text);
}

const char *tokens_shown(const Tokens *tokens) {
    if (!tokens_end(tokens)) return quoted(tokens, tokens->token->text);
    return tokens->end                         ? tokens->end
           : tokens->token->kind == TOKEN_LINE ? "the end of the line"
                                               : "the end";
}

bool tokens_error(Tokens *tokens, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    diag_error(tokens->diag, tokens->token->at, "%s",
               arena_vformat(tokens->arena, format, arguments));
    va_end(arguments);
    return false;
}

bool tokens_unexpected(Tokens *tokens, const char *expected) {
    if (tokens->token->kind != TOKEN_BAD)
        diag_error(tokens->diag, tokens->token->at, "expected %s, %s %s", expected,
                   tokens->found ? "found" : "not", tokens_shown(tokens));
    return false;
}

bool tokens_expect(Tokens *tokens, const char *text, const char *where) {
    if (tokens_take(tokens, text)) return true;
    return tokens_unexpected(
        tokens, where ? arena_format(tokens->arena, "%s %s", quoted(tokens, text), where)
                      : quoted(tokens, text));
}

const char *tokens_name(Tokens *tokens, const char *expected) {
    const char *name = tokens->token->text;
    if (tokens->token->kind != TOKEN_NAME) {
        tokens_unexpected(tokens, expected);
        return NULL;
    }
    tokens_next(tokens);
    return name;
}

void tokens_suggest(Tokens *tokens, Position at, const char *word, const char *const *words,
                    int count) {
    const char *closest = diag_closest(word, words, count);
    if (closest)
        diag_note(tokens->diag, at, tokens->found ? "did you mean \"%s\"?" : "did you mean '%s'?",
                  closest);
}
