/* The one lexer: text as tokens.
 *
 * Pragmas, strategies, rules, layouts and the IR's text are lexed as C is. Blanks, comments and
 * lines joined by a backslash separate tokens, and every token knows where it stands, so that
 * carets point to it. What a token means is its reader's business (tokens.h).
 */
#ifndef SYNTAX_LEX_H
#define SYNTAX_LEX_H

#include "support/array.h"
#include "support/diag.h"

#include <stdbool.h>

typedef enum TokenKind {
    TOKEN_NAME,      // letters of UTF-8 belong to names
    TOKEN_NUMBER,    // as C's preprocessor sees numbers: `1f1b` is one; a dot that begins `..` does
                     // not belong to it
    TOKEN_STRING,    // with its quotes
    TOKEN_CHARACTER, // in single quotes
    TOKEN_MARK,      // one character, or two such as `->`
    TOKEN_BAD,       // what is no text, or what a reader has refused; reported already
    TOKEN_LINE,      // the end of a line
    TOKEN_END        // the end of all
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; // as spelled; "" of TOKEN_LINE and TOKEN_END
    Position at;
    const char *start; // in the text that was lexed, `length` bytes; of the macro's use where it
                       // was expanded
    int length;
    bool expanded; // it came out of a macro
} Token;
typedef Array(Token) TokenList;

typedef struct Lexer {
    Arena *arena;
    Diag *diag;
    const char *next;
    Position at; // of next
    bool lines;  // the end of a line is a token
} Lexer;

/* Begins at `text`, which stands at `at`. A byte order mark at the beginning of a file is passed
 * over. */
Lexer lex_begin(Arena *arena, Diag *diag, Position at, const char *text);

/* The next token; TOKEN_END at the end, again and again. A comment without end and bytes that are
 * no text are reported. */
Token lex_next(Lexer *lexer);

/* Appends all tokens that are left, TOKEN_END the last. */
void lex_rest(Lexer *lexer, TokenList *list);

/* Whether a token is the name, number or mark `text`. */
bool token_is(const Token *token, const char *text);

/* Whether a token ends a line, or all. */
static inline bool token_ends(const Token *token) { return token->kind >= TOKEN_LINE; }

/* Whether blanks stand between a token and the one that it follows. */
bool token_spaced(const Token *before, const Token *token);

/* The tokens from `first` up to `end`, with one blank where there are some. */
const char *token_line(Arena *arena, const Token *first, const Token *end);

/* What a TOKEN_STRING stands for. */
char *token_unquoted(Arena *arena, const Token *token);

#endif
