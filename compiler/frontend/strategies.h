/* The strategies of a source or of a strategy file: which of them a program has, and what of the model they name. */
#ifndef FRONTEND_STRATEGIES_H
#define FRONTEND_STRATEGIES_H

#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct StrategyChoice {
    StrategyList list; // of the source, or of --strategy=FILE
    Strategy *chosen;  // NULL: one device, or an error was reported
    bool shared;       // it stands in a file, which may serve several models
} StrategyChoice;

/* Reads the strategies of the unit's pragmas and, where the unit has models and no error was reported so far, takes the one that the
 * options say; shape variables get its values. */
void strategies_choose(CUnit *unit, Macros macros, const FrontendOptions *options, StrategyChoice *choice);

/* Reports a strategy that splits a dimension which no pragma names. A strategy file may serve several models: there it is a warning. */
void strategies_check_splits(CUnit *unit, const StrategyChoice *choice);

/* Reports a strategy that places layers or towers which no model of the unit has. */
void strategies_check_layers(const Unit *unit);

#endif
