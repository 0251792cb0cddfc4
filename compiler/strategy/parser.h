/* What reading strategies is made of: the place in the tokens, integer expressions, lists and ranges. Used by strategy_parse.c alone.
 *
 * Functions that give bool report their error and give false; they stop where it is.
 */
#ifndef STRATEGY_PARSER_H
#define STRATEGY_PARSER_H

#include "strategy/token.h"

typedef struct StrategyParser {
    Arena *arena;
    Diag *diag;
    const Token *token;
    const StrategyNames *names;
    const char *unnamed;
    StrategyList *list;
    Strategy *open; // the strategy that statements belong to; NULL outside
    bool framed;    // `open` began with the statement `strategy`
    bool refused;   // a line outside of strategies, or an end, was refused: the next end may be that of a strategy that was not seen
    bool implied;   // its last pipeline was not written: a stage came first
    int errors;     // reported before `open` began
    int depth;      // of parentheses in an expression
} StrategyParser;

/* Whether the current token is `text`, or ends the statement. */
bool strategy_reads(const StrategyParser *parser, const char *text);
bool strategy_line_end(const StrategyParser *parser);

/* Passes over the current token, unless it ends the statement. */
void strategy_next(StrategyParser *parser);

/* Passes over the current token if it is `text`. */
bool strategy_accept(StrategyParser *parser, const char *text);
bool strategy_expect(StrategyParser *parser, const char *text);

/* Reports that the current token is not what was expected; quiet where the lexer has complained already. False. */
bool strategy_unexpected(StrategyParser *parser, const char *expected);

/* A name, or NULL after an error; `expected` says what it stands for. */
const char *strategy_name(StrategyParser *parser, const char *expected);

/* "did you mean": a note when one of the words is close to what stands at `at`. */
void strategy_suggest(StrategyParser *parser, Position at, const char *word, const char *const *words, int count);

/* An integer expression; with bounds; and only a number, a name or an expression in parentheses. */
bool strategy_integer(StrategyParser *parser, int64_t *value);
bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most, int64_t *value);
bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value);

/* a or a-b: an inclusive range. */
bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last);

/* ( item { , item } ) */
bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to);

#endif
