/* How the equations of a rule are computed: in loops along a row, one row after the other.
 *
 *     total[r] = x[r, c]; mean[r] = total[r] / size(c); y[r, c] = x[r, c] - mean[r]
 *
 * Here loop 0 adds up `total`, `mean` follows behind it, and loop 1 gives `y`. A value of a row's
 * elements belongs to the first loop in which all that it needs is known. In later loops a result
 * is read from its storage, a local value is computed again. Where every value has all factors
 * there are no rows, and one loop.
 */
#ifndef RULE_EQUATIONS_H
#define RULE_EQUATIONS_H

#include "rule/rule.h"

enum { EQUATIONS_MOST_LOOPS = 32 };

typedef enum EquationForm {
    EQUATION_ELEMENT, // of every element of a row
    EQUATION_SUM,     // of a row: terms added up along it, and perhaps others added once
    EQUATION_ROW      // of a row, out of what is known of it
} EquationForm;

typedef struct EquationStep {
    EquationForm form;
    int loop;       // EQUATION_ROW: computed in front of this loop
    uint32_t loops; // EQUATION_ELEMENT: all loops that compute it
} EquationStep;

typedef struct EquationPlan {
    bool rows;
    const bool *inner; // by factor: it goes along the rows
    int loop_count;
    const EquationStep *step; // by equation
    const int *equation;      // by value: its equation
    const uint32_t *reads;    // by operand: the loops that read elements of it
} EquationPlan;

EquationPlan equations_plan(Arena *arena, const Rule *rule);

/* The access of value `value` of the equations: a result, or a local value. */
const Access *equations_value(const Rule *rule, int value);

/* Marks the factors of all that an expression of a rule reads. */
void equations_mark(const Rule *rule, const Expr *expr, bool *marked);

/* An expression of a call without the operands that are absent: their numbers stand there, and
 * terms without one are left out. `present` has an entry an operand of the rule. */
const Expr *equations_present(Arena *arena, const Rule *rule, const Expr *expr,
                              const bool *present);

/* Whether the expression has an operand or value with elements along the rows. */
bool equations_along(const Rule *rule, const EquationPlan *plan, const Expr *expr);

#endif
