/* A cursor in a list of tokens, and the steps of recursive-descent parsers.
 *
 *     if (!tokens_expect(tokens, "(", "after \"dims\"")) return false;
 *     const char *name = tokens_name(tokens, "a dimension");
 *
 * A parsing step that fails reports an error, stays at the token, and returns false. */
#pragma once

#include "support/diag.h"

#include <stdbool.h>

typedef struct Token Token; // syntax/lex.h

typedef struct Tokens {
    Arena *arena;
    Diag *diag;
    const Token *token; // the current token; the last is TOKEN_END, which is never passed
    const char *end;    // name of the end in messages; NULL: "the end of the line" or "the end"
    bool found; // messages say: expected "this", found "that"; else: expected 'this', not 'that'
} Tokens;

/* Returns a cursor at the first token of a text whose position is `at`. Line ends are blanks. */
Tokens tokens_of(Arena *arena, Diag *diag, Position at, const char *text);

/* Move to the next token unless the line ends here, and to the first token of the next line. */
void tokens_next(Tokens *tokens);
void tokens_next_line(Tokens *tokens);

/* Return whether the current token is the word or mark `text`; tokens_take also passes it. */
bool tokens_is(const Tokens *tokens, const char *text);
bool tokens_take(Tokens *tokens, const char *text);

/* Returns whether the line or the text ends at the current token. */
bool tokens_end(const Tokens *tokens);

/* Returns whether the token after the current one is `text`. */
bool tokens_before(const Tokens *tokens, const char *text);

/* Reports "expected EXPECTED, found TOKEN" unless the current token is TOKEN_BAD. Returns false. */
bool tokens_unexpected(Tokens *tokens, const char *expected);

/* Reports an error at the current token. Returns false. */
bool tokens_error(Tokens *tokens, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Passes `text` and returns true, or reports that it is missing and returns false. `where`, such as
 * "after the index", continues the message; NULL: no continuation. */
bool tokens_expect(Tokens *tokens, const char *text, const char *where);

/* Passes a name and returns it; NULL after an error. `expected` describes the name: "a factor". */
const char *tokens_name(Tokens *tokens, const char *expected);

/* Returns the current token as messages show it: quoted, or words such as "the end". */
const char *tokens_shown(const Tokens *tokens);

/* Adds the note "did you mean" at `at` when one of the words is close to `word`. */
void tokens_suggest(Tokens *tokens, Position at, const char *word, const char *const *words,
                    int count);
