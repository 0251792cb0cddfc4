/* Chooses a program's strategies, in its source or in files, and checks the names in them.
 *
 *     #pragma hspmd strategy fast
 *     #pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
 *     #pragma hspmd end strategy */
#pragma once

#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct Strategy Strategy; // strategy/strategy.h
typedef struct Pipeline Pipeline;

typedef struct ChosenStrategy {
    Strategy *strategy;
    bool shared; // comes from a file, which may serve several models
} ChosenStrategy;
/* The strategies of a program, in order; empty: the program runs on one device. */
typedef Array(ChosenStrategy) StrategyChoice;

/* Reads the strategies in the unit's pragmas. If the unit has models and no errors, adds to *choice
 * the strategies that the options name; with `text`, only the strategy in `text`. Resolves their
 * devices and checks their shape variables. */
void strategies_choose(CUnit *unit, Macros macros, const FrontendOptions *options, const char *text,
                       StrategyChoice *choice);

/* Adds to *all the strategies of the source, then those of the files that the options name. Reports
 * a word of --strategy that is neither a name nor a file. */
void strategies_find(CUnit *unit, Macros macros, const FrontendOptions *options,
                     StrategyChoice *all);

/* Checks the strategies of a source whose models wait for other sources, and those of the files
 * that the options name. A name of the options may be a strategy of another source. */
void strategies_check_waiting(CUnit *unit, Macros macros, const FrontendOptions *options);

/* Sets each shape variable to its value in the strategy (NULL: none), else in the source. */
void strategies_give_shapes(CUnit *unit, const Strategy *strategy);

/* Gives shape variables a strategy's values, then a pipeline's lengths. Returns whether a length
 * differs from the strategy's value. Sets *good to false if a length is above it or below 2. */
bool strategies_give_lengths(CUnit *unit, const Strategy *strategy, const Pipeline *pipeline,
                             bool *good);

/* Reports split dimensions that no pragma names; in files, only warns unless one looks misspelt. */
void strategies_check_splits(CUnit *unit, const StrategyChoice *choice);

/* Reports strategies that place layers or towers which no model has under that strategy. */
void strategies_check_layers(const Unit *unit);
