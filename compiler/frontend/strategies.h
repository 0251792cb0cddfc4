/* Chooses the strategies of a program, from its source or from strategy files, and checks the names
 * of the model in them.
 *
 *     #pragma hspmd strategy fast
 *     #pragma hspmd   stage devices(0-3) mesh(dp:2, tp:2)
 *     #pragma hspmd end strategy */
#ifndef FRONTEND_STRATEGIES_H
#define FRONTEND_STRATEGIES_H

#include "frontend/frontend.h"
#include "frontend/pragma/pragma.h"

typedef struct Strategy Strategy; // strategy/strategy.h
typedef struct Pipeline Pipeline;

typedef struct ChosenStrategy {
    Strategy *strategy;
    bool shared; // comes from a file, which may serve several models
} ChosenStrategy;
typedef Array(ChosenStrategy)
    StrategyChoice; // of a program, the first one first; empty: one device

/* Reads the strategies of the unit's pragmas. Where the unit has models and no error, takes the
 * strategies of the options, or that of `text` if not NULL. Resolves devices and checks shape
 * variables. */
void strategies_choose(CUnit *unit, Macros macros, const FrontendOptions *options, const char *text,
                       StrategyChoice *choice);

/* Sets the shape variables to a strategy's values, else (NULL: all) to the source's. */
void strategies_give_shapes(CUnit *unit, const Strategy *strategy);

/* Sets the shape variables to a strategy's values and a pipeline's over them. Returns whether the
 * pipeline changes one; sets *good to false on error, a length above the strategy's or below 2. */
bool strategies_give_lengths(CUnit *unit, const Strategy *strategy, const Pipeline *pipeline,
                             bool *good);

/* Reports a strategy that splits a dimension which no pragma names; only warns for a strategy file,
 * which may serve several models. */
void strategies_check_splits(CUnit *unit, const StrategyChoice *choice);

/* Reports strategies that place layers or towers which no model has under them. */
void strategies_check_layers(const Unit *unit);

#endif
