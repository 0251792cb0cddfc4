/* The lexer: splits text into tokens.
 *
 *     x -> [0-3]{0:4}    NAME x, MARK ->, MARK [, NUMBER 0, MARK -, NUMBER 3, MARK ], ...
 *
 * Pragmas, strategies, rules, layouts and IR text are lexed as C is. Blanks, comments and
 * backslashes at line ends separate tokens. Every token has its position. Parsers use tokens.h. */
#pragma once

#include "support/array.h"
#include "support/diag.h"

#include <stdbool.h>

typedef enum TokenKind {
    TOKEN_NAME,      // may have UTF-8 letters
    TOKEN_NUMBER,    // a preprocessing number of C, such as `1f1b`; does not take the dot of a `..`
    TOKEN_STRING,    // with its quotes
    TOKEN_CHARACTER, // in single quotes
    TOKEN_MARK,      // one character, or two such as `->`
    TOKEN_BAD,       // bytes that are not UTF-8, or refused by a parser; reported already
    TOKEN_LINE,      // the end of a line
    TOKEN_END        // the end of the text
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; // as spelled; "" for TOKEN_LINE and TOKEN_END
    Position at;
    // The token is `length` bytes of the lexed text; a token from a macro, the use of the macro.
    const char *start;
    int length;
    bool expanded; // comes from a macro
} Token;
typedef Array(Token) TokenList;

typedef struct Lexer {
    Arena *arena;
    Diag *diag;
    const char *next;
    Position at; // position of `next`
    bool lines;  // line ends are tokens
    bool hashes; // `#` begins a comment, too, as in shells; not in front of `pragma`
} Lexer;

/* Starts a lexer at `text`, whose position is `at`. Skips a file's byte order mark. */
Lexer lex_begin(Arena *arena, Diag *diag, Position at, const char *text);

/* Returns the next token; at the end of the text, TOKEN_END every time. Reports a comment without
 * an end, and bytes that are not UTF-8. */
Token lex_next(Lexer *lexer);

/* Appends the remaining tokens to `list`; the last is TOKEN_END. */
void lex_rest(Lexer *lexer, TokenList *list);

/* Returns whether a token is the name, number or mark `text`. */
bool token_is(const Token *token, const char *text);

/* Returns whether a token ends a line or the text. */
static inline bool token_ends(const Token *token) { return token->kind >= TOKEN_LINE; }

/* Returns the text of the tokens [first, end), with one blank where blanks or comments separate
 * them, and before each token from a macro. */
const char *token_line(Arena *arena, const Token *first, const Token *end);

/* Returns the value of a TOKEN_STRING, without its quotes and with its escapes replaced. */
char *token_unquoted(Arena *arena, const Token *token);
