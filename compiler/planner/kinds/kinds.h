/* Planners: from what is to be trained, on which devices, to how it is laid over them, and a bound
 * that no plan is below.
 *
 * A kind of plan is a row of the table: how its input is planned, and how the least objective that
 * any plan can have is bounded. Each kind has a folder with the paper that it follows. `input.h`
 * reads inputs, `linear_program.h` solves linear and integer programs, `budget.h` says when a
 * search ends.
 *
 *     const PlanKind *kind = plan_kind("malleus");
 *     Field input = input_open(arena, "input.json");
 *     json_t *plan = kind->plan(arena, input, &budget);    NULL: input_error(input) says why
 *
 * The same input and options give the same plan, byte for byte.
 */
#ifndef PLANNER_KINDS_KINDS_H
#define PLANNER_KINDS_KINDS_H

#include "planner/kinds/budget.h"
#include "planner/kinds/input.h"
#include "support/arena.h"

#include <jansson.h>

/* Makes a new JSON value from an input; NULL after an error in the input. */
typedef json_t *PlanFunction(Arena *arena, Field input, Budget *budget);

typedef struct PlanKind {
    const char *name;
    const char *what;      // one line for the command's help
    PlanFunction *plan;    // {...}: the kind's own format
    PlanFunction *certify; // {"bound": number, "proof": {...}}: the proof has what a reader needs
                           // to check the bound
} PlanKind;

/* All kinds; the last one has no name. */
extern const PlanKind plan_kinds[];

/* The kind of this name, or NULL. */
const PlanKind *plan_kind(const char *name);

#endif
