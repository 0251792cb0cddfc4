/* Reading tokens: the reader's place in a list of them, and the small steps that every reader is
 * made of.
 *
 * Functions that give bool report their error and give false; they stop where it is.
 */
#ifndef SYNTAX_TOKENS_H
#define SYNTAX_TOKENS_H

#include "support/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct Token Token; // syntax/lex.h

typedef struct Tokens {
    Arena *arena;
    Diag *diag;
    const Token *token; // the current one; the last is TOKEN_END, which is never passed
    const char *end; // what messages call the end of a line and of all; NULL: "the end of the line"
                     // and "the end"
    bool found; // messages say: expected "this", found "that"; else: expected 'this', not 'that'
} Tokens;

/* The place at the first token of a text that stands at `at`; its line ends are blanks. */
Tokens tokens_of(Arena *arena, Diag *diag, Position at, const char *text);

/* Goes on to the next token of the line; and over the rest of the line and its end. */
void tokens_next(Tokens *tokens);
void tokens_next_line(Tokens *tokens);

/* Whether the current token is the mark, name or number `text`; and passes over it if it is. */
bool tokens_is(const Tokens *tokens, const char *text);
bool tokens_take(Tokens *tokens, const char *text);

/* Whether a line, or all, ends here. */
bool tokens_end(const Tokens *tokens);

/* Whether the token behind the current one is `text`. */
bool tokens_before(const Tokens *tokens, const char *text);

/* Reports that `expected` does not stand here, unless what stands here was reported already.
 * False. */
bool tokens_unexpected(Tokens *tokens, const char *expected);

/* Reports what is wrong with the current token. False. */
bool tokens_error(Tokens *tokens, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes `text`, or reports that it is missing. `where` says after or in what: "after the index";
 * NULL: nothing more. */
bool tokens_expect(Tokens *tokens, const char *text, const char *where);

/* Takes a name; NULL after an error. `expected` says what it stands for: "a factor". */
const char *tokens_name(Tokens *tokens, const char *expected);

/* How a message shows the current token: quoted, or what its end is called. */
const char *tokens_shown(const Tokens *tokens);

/* The note "did you mean" at `at`, where one of the words is close to `word`. */
void tokens_suggest(Tokens *tokens, Position at, const char *word, const char *const *words,
                    int count);

#endif
