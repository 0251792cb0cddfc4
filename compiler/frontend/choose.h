/* The strategies of a source or of a strategy file, and which of them a program has. */
#ifndef FRONTEND_CHOOSE_H
#define FRONTEND_CHOOSE_H

#include "frontend/ctree.h"
#include "frontend/frontend.h"

typedef struct StrategyChoice {
    StrategyList list; // of the source, or of --strategy=FILE
    Strategy *chosen;  // NULL: one device, or an error was reported
    bool shared;       // it stands in a file, which may serve several models
} StrategyChoice;

/* Reads the strategies of the unit's pragmas and, where the unit has models and no error was reported so far, takes the one that the
 * options say. */
void strategy_choose(CUnit *unit, const FrontendOptions *options, const StrategyNames *names, StrategyChoice *choice);

#endif
