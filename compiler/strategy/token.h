/* Tokens of strategy text, lexed as C: names, numbers, punctuation, comments left out. A line end that no backslash joins ends a statement. */
#ifndef STRATEGY_TOKEN_H
#define STRATEGY_TOKEN_H

#include "strategy/strategy.h"

typedef enum TokenKind {
    TOKEN_NAME,
    TOKEN_NUMBER, // as C's preprocessor sees numbers: `1f1b` is one
    TOKEN_PUNCT,  // one character, or << >>
    TOKEN_BAD,    // what cannot be lexed; reported already
    TOKEN_LINE,   // the end of a statement
    TOKEN_END     // the end of everything
} TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; // "" for TOKEN_LINE and TOKEN_END
    Position at;
} Token;
typedef Array(Token) TokenList;

/* Appends the tokens of all texts; each text ends with TOKEN_LINE, the whole with one TOKEN_END. Lexical errors are reported. */
void strategy_tokens(Arena *arena, Diag *diag, const StrategyText *texts, int text_count, TokenList *tokens);

#endif
