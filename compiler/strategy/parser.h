/* Shared by the files of the parser: its state, integer expressions, lists and ranges. parse.c
 * reads statements and the frame, stage.c pipelines, stages and devices.
 *
 * Functions that return bool report their error, return false and stop at its token. */
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
    bool framed;    // `open` began with `strategy NAME`
    bool refused; // an error outside of strategies was reported, so the next `end` may belong to a
                  // strategy that was not recognised
    bool implied; // its last pipeline is implied: a stage came first
    bool skimmed; // `open` is not the wanted strategy: only its syntax is checked, and its integer
                  // expressions count as 1
    int errors;   // errors that were reported before `open` began
    int depth;    // nesting of parentheses in an expression
} StrategyParser;

/* Read an integer expression: any; one within bounds, which `what` names in messages; only a
 * number, a name or an expression in parentheses. */
bool strategy_integer(StrategyParser *parser, int64_t *value);
bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most,
                      int64_t *value);
bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value);

/* Reads a or a-b, an inclusive range. */
bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last);

/* Reads a list: ( item { , item } ). */
bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to);

/* Reads name = value of a shape variable and appends it to the ShapeValues at `to`. */
bool strategy_shape_value(StrategyParser *parser, void *to);

/* Read what follows the words `pipeline`, `stage`, `idle`; `at` is the word's position. */
bool pipeline_parse(StrategyParser *parser, Position at);
bool stage_parse(StrategyParser *parser, Position at);
bool idle_parse(StrategyParser *parser, Position at);

/* Return whether the strategy names devices by class; report devices that are named twice or
 * forgotten. */
bool strategy_has_classes(const Strategy *strategy);
void strategy_check_devices(Diag *diag, const Strategy *strategy);

/* Returns whether both names are NULL, or equal. */
static inline bool name_same(const char *a, const char *b) {
    return a == b || (a && b && !strcmp(a, b));
}

#endif
