/* Tokens of rules and of the IR's text.
 *
 * The lexer walks over C-like text and keeps the position of every token, so that carets point into it. Blanks, comments and lines
 * continued by a backslash separate tokens. A lexer that was begun with `lines` gives the end of each line as a token.
 */
#ifndef SYNTAX_LEX_H
#define SYNTAX_LEX_H

#include "support/diag.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum TokenKind { TOKEN_END, TOKEN_LINE, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_MARK } TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *start;
    int length;
    Position at;
} Token;

typedef struct Lexer {
    Arena *arena;
    Diag *diag;
    const char *next;
    Position at; // of next
    bool lines;  // the end of a line is a token
    bool dotted; // a dot between letters belongs to a name
    Token token; // the current one
} Lexer;

/* Begins at `text`, which stands at `at`, and reads the first token. */
void lex_begin(Lexer *lexer, Arena *arena, Diag *diag, Position at, const char *text, bool lines);

/* Goes on to the next token. */
void lex_next(Lexer *lexer);

/* Whether the current token is the mark or name `spelling`. */
bool lex_is(const Lexer *lexer, const char *spelling);

/* Takes the current token when it is `spelling`. */
bool lex_take(Lexer *lexer, const char *spelling);

/* Takes `spelling`, or reports that it is missing. `where` says after or in what: "after the index". */
bool lex_expect(Lexer *lexer, const char *spelling, const char *where);

/* The current token as a string; of a TOKEN_STRING what it stands for. */
char *lex_spelling(const Lexer *lexer);

/* How a message shows the current token: quoted, or "the end". */
const char *lex_shown(const Lexer *lexer);

#endif
