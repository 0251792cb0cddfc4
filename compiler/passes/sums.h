/* Sums of more than two terms, as pass differentiate leaves them: nested additions. The gradient of
 * a value that several operators read is such a sum.
 *
 *     t = add(a, b)
 *     s = add(t, c)     an outer sum; terms: a, b, c
 *
 * If another operator reads t, or t is a parameter's gradient, the terms of s are t and c.
 */
#pragma once

#include "ir/module.h"

typedef Array(Value *) Values;

/* The additions of a module whose operands have the result's type. */
typedef struct Sums {
    Module *module;
    Arena *arena;
    Op **sum_of; // by value id: the addition that is the value's only use; NULL: none
} Sums;

/* Finds the additions; `arena` holds the result. */
Sums sums_of(Arena *arena, Module *module);

/* Returns whether an operator is an addition that is no term of another one. */
bool is_outer_sum(const Sums *sums, const Op *op);

/* Appends the terms of an addition to `terms`. An addition with no other use is no term; its terms
 * are. */
void sum_terms(const Sums *sums, const Op *sum, Values *terms);
