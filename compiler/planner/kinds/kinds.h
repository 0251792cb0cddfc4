/* The planners of hetu-plan. A planner reads a model's costs and the devices and writes a plan; a
 * certifier computes a lower bound of every plan's objective.
 *
 * Each kind is a row of the table and follows one paper, which its folder names: malleus
 * (stragglers), hydraulis (batches of unequal lengths), flexsp (sequence parallelism by length),
 * galvatron (a strategy for each layer), spindle (several tasks).
 *
 *     const PlanKind *kind = plan_kind("malleus");
 *     Field input = input_open(arena, "input.json");
 *     json_t *plan = kind->plan(arena, input, &budget);    NULL: input_error(input) says why
 *
 * The same input and options give the same plan, byte for byte. */
#pragma once

#include "planner/kinds/budget.h"
#include "planner/kinds/input.h"
#include "support/arena.h"

#include <jansson.h>

/* Makes a new JSON value from an input; NULL after an error in the input. */
typedef json_t *PlanFunction(Arena *arena, Field input, Budget *budget);

typedef struct PlanKind {
    const char *name;
    const char *what;      // one line for --help
    PlanFunction *plan;    // returns {...}: the kind's own format
    PlanFunction *certify; // returns {"bound": number, "proof": {...}}, to check the bound
} PlanKind;

/* All kinds; the last one has no name. */
extern const PlanKind plan_kinds[];

/* Returns the kind of this name, or NULL. */
const PlanKind *plan_kind(const char *name);
