/* What strategies have inside: the parser's state, integer expressions, lists and ranges, and what
 * its files check for each other. parse.c reads statements and their frame, stage.c pipelines,
 * stages and devices.
 *
 * Functions that give bool report their error and give false; they stop where it is.
 */
#ifndef STRATEGY_PARSER_H
#define STRATEGY_PARSER_H

#include "strategy/strategy.h"

#include <string.h>

typedef struct StrategyParser {
    Tokens *tokens;
    const StrategyNames *names;
    const char *unnamed;
    StrategyList *list;
    Strategy *open; // the strategy that statements belong to; NULL outside
    bool framed;    // `open` began with the statement `strategy`
    bool refused; // a line outside of strategies, or an end, was refused: the next end may be that
                  // of a strategy that was not seen
    bool implied; // its last pipeline was not written: a stage came first
    bool skimmed; // `open` is not the strategy that is wanted: its integer expressions are all 1,
                  // so that none is out of bounds
    int errors;   // reported before `open` began
    int depth;    // of parentheses in an expression
} StrategyParser;

/* An integer expression; with bounds, `what` names it in messages; and only a number, a name or an
 * expression in parentheses. */
bool strategy_integer(StrategyParser *parser, int64_t *value);
bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most,
                      int64_t *value);
bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value);

/* a or a-b: an inclusive range. */
bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last);

/* ( item { , item } ) */
bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to);

/* name = value of a shape variable: appended to the ShapeValues at `to`. */
bool strategy_shape_value(StrategyParser *parser, void *to);

/* What stands behind the words `pipeline`, `stage`, `idle`, which stand at `at`. */
bool pipeline_parse(StrategyParser *parser, Position at);
bool stage_parse(StrategyParser *parser, Position at);
bool idle_parse(StrategyParser *parser, Position at);

/* Returns whether devices stand in the strategy by their classes; and reports devices that stand
 * in it twice, or are forgotten. */
bool strategy_has_classes(const Strategy *strategy);
void strategy_check_devices(Diag *diag, const Strategy *strategy);

/* Returns whether both are none (NULL), or equal. */
static inline bool name_same(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

#endif
