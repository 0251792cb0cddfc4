/* Operators: the functions that are declared under `#pragma hspmd op`. */
#ifndef FRONTEND_OPERATORS_H
#define FRONTEND_OPERATORS_H

#include "frontend/ctree.h"
#include "frontend/pragma/pragma.h"

/* Reads the rule of a function, which becomes an operator of the unit. Errors are reported. */
void operator_make(CUnit *unit, Pragma *pragma, CFunction *function);

/* Checks that the kernels and gradients that rules name are there, and that the bodies of operators
 * name the same. `backends` are those that a rule may name a kernel for, the first the one that
 * runs plain C; NULL at the end. */
void operators_check(CUnit *unit, const char *const *backends);

#endif
