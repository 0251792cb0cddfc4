/* Shared by the files of the parser: its state, integer expressions, lists and ranges. parse.c
 * reads statements and `strategy` to `end`, parse_stage.c reads pipelines, stages and devices.
 *
 * Functions that read report an error, return false and leave the parser at the token in error. */
#pragma once

#include "strategy/strategy.h"

#include <string.h>

typedef struct StrategyParser {
    Tokens *tokens;
    const StrategyNames *names;
    const char *unnamed;
    StrategyList *list;
    Strategy *open; // the strategy that statements belong to; NULL outside of strategies
    bool framed;    // `open` began with `strategy NAME`
    bool refused; // an error outside of strategies was reported, so the next `end` may belong to a
                  // strategy that was not recognised
    bool implied; // the pipeline of `open` is implied, since a `stage` came before any `pipeline`
    bool skimmed; // `open` is not the wanted strategy: only its syntax is checked, and its numbers
                  // and constants count as 1
    int errors;   // number of errors reported before `open` began; -1: `open` has no name
    int depth;    // nesting of parentheses in an expression
} StrategyParser;

/* Read to *value an integer expression; one from `least` to `most`, called `what` in messages; and
 * one that is a number, a name or in parentheses, called `expected` in messages. */
bool strategy_integer(StrategyParser *parser, int64_t *value);
bool strategy_bounded(StrategyParser *parser, const char *what, int64_t least, int64_t most,
                      int64_t *value);
bool strategy_primary(StrategyParser *parser, const char *expected, int64_t *value);

/* Reads `a` or `a-b` to *first and *last, which the range includes. Messages call each `what`. */
bool strategy_range(StrategyParser *parser, const char *what, int64_t *first, int64_t *last);

/* Reads a list, ( item { , item } ). Calls `item` with `to` to read each item. */
bool strategy_list(StrategyParser *parser, bool item(StrategyParser *parser, void *to), void *to);

/* Reads NAME = VALUE of a shape variable and appends it to the ShapeValues at `to`. */
bool strategy_shape_value(StrategyParser *parser, void *to);

/* Read the rest of a statement after the word `pipeline`, `stage` or `idle`, which is at `at`. */
bool pipeline_parse(StrategyParser *parser, Position at);
bool stage_parse(StrategyParser *parser, Position at);
bool idle_parse(StrategyParser *parser, Position at);

/* strategy_has_classes returns whether the strategy names devices by class. strategy_check_devices
 * reports devices that are named twice or not at all. */
bool strategy_has_classes(const Strategy *strategy);
void strategy_check_devices(Diag *diag, const Strategy *strategy);

/* Returns the `split` rule of a dimension; NULL: the dimension has none. */
SplitRule *strategy_split(const Strategy *strategy, const char *dim);
