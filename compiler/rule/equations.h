/* Loops for the equations of a rule: which loop over a row computes which equation.
 *
 *     total[r] = x[r, c];  mean[r] = total[r] / size(c);  y[r, c] = x[r, c] - mean[r]
 *
 *     for each row r:   loop 0 over c: total += x[r, c]
 *                       mean = total / size(c)
 *                       loop 1 over c: y[r, c] = x[r, c] - mean
 *
 * An elementwise equation runs in the first loop in which all values that it reads are known. Later
 * loops load a result from memory, and compute a local value again. If every value has all factors,
 * there are no rows, and there is one loop. */
#pragma once

#include "rule/rule.h"

enum { EQUATIONS_MOST_LOOPS = 32 };

typedef enum EquationForm {
    EQUATION_ELEMENT, // one value for each element of a row
    // One value for each row: sums terms over the row, and adds terms without row factors once.
    EQUATION_SUM,
    EQUATION_ROW // one value for each row, from values of the row
} EquationForm;

typedef struct EquationStep {
    EquationForm form;
    int loop;       // first loop able to compute the value; EQUATION_ROW: computed before this loop
    uint32_t loops; // EQUATION_ELEMENT, EQUATION_SUM: bit l: loop l computes it
} EquationStep;

typedef struct EquationPlan {
    bool rows;         // some factor goes along rows
    const bool *inner; // by factor: the factor goes along rows
    int loop_count;
    const EquationStep *step; // the steps, by equation
    const int *equation;      // by value: the equation that computes it
    const uint32_t *reads;    // by operand: bit l: loop l reads elements of it
} EquationPlan;

EquationPlan equations_plan(Arena *arena, const Rule *rule);

/* Returns the access of a value of equations: results come first, then local values. */
const Access *equations_value(const Rule *rule, int value);

/* Sets marked[f] for each factor f of the accesses in an expression. */
void equations_mark(const Rule *rule, const Expr *expr, bool *marked);

/* Returns the expression with default numbers for absent operands, and without terms whose absent
 * operand has no default number. `present` has an entry for each operand of the rule. */
const Expr *equations_present(Arena *arena, const Rule *rule, const Expr *expr,
                              const bool *present);

/* Returns whether an expression reads an operand or value that has elements along rows. */
bool equations_along(const Rule *rule, const EquationPlan *plan, const Expr *expr);
