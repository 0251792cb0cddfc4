/* The strategies of a source or of strategy files: which of them a program has, and what of the
 * model they name. */
#ifndef FRONTEND_STRATEGIES_H
#define FRONTEND_STRATEGIES_H

#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct Strategy Strategy; // strategy/strategy.h
typedef struct Pipeline Pipeline;

typedef struct ChosenStrategy {
    Strategy *strategy;
    bool shared; // it stands in a file, which may serve several models
} ChosenStrategy;
typedef Array(ChosenStrategy) StrategyChoice; // those of a program; it begins with the first one;
                                              // none: one device, or an error was reported

/* Reads the strategies of the unit's pragmas and, where the unit has models and no error was
 * reported so far, takes those that the options say, or the one of `text` where that is not NULL.
 * Names are found once each, and what they say of shape variables is checked. */
void strategies_choose(CUnit *unit, Macros macros, const FrontendOptions *options, const char *text,
                       StrategyChoice *choice);

/* Gives the shape variables a strategy's values, and those of the source where it has none; NULL:
 * all of the source. */
void strategies_give_shapes(CUnit *unit, const Strategy *strategy);

/* The same, and those of a pipeline over them. Whether one of these is another than the strategy's;
 * *good is set to false after an error: a length above the strategy's, or none. */
bool strategies_give_lengths(CUnit *unit, const Strategy *strategy, const Pipeline *pipeline,
                             bool *good);

/* Reports a strategy that splits a dimension which no pragma names. A strategy file may serve
 * several models: there it is a warning. */
void strategies_check_splits(CUnit *unit, const StrategyChoice *choice);

/* Reports strategies that place layers or towers which no model of the unit has under them. */
void strategies_check_layers(const Unit *unit);

#endif
