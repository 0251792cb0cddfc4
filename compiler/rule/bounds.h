/* Interval arithmetic: the range of an expression, given the ranges of its leaves.
 *
 *     x in [0, 1]        ->  2 * x + 1 in [1, 3],  expf(x) in [1, e],  x < 2 in [1, 1] (true)
 *
 * A leaf of unknown value is finite, and the ranges assume that no operation on finite numbers
 * gives NaN. So 0 * x is 0, and 0 / x is 0. Where infinite numbers may occur, the range is `open`.
 */
#pragma once

#include "rule/expr.h"

/* The numbers in the closed interval [low, high]; `open`: any number, infinity or NaN. */
typedef struct Bounds {
    double low, high;
    bool open;
} Bounds;

Bounds bounds_number(double number);
Bounds bounds_between(double low, double high);
Bounds bounds_finite(void);
Bounds bounds_open(void);

/* Returns whether the range is this one number. */
bool bounds_is(Bounds range, double number);

/* Returns the smallest range that contains both. */
Bounds bounds_hull(Bounds a, Bounds b);

/* Return the ranges of a + b and of -a. */
Bounds bounds_sum(Bounds a, Bounds b);
Bounds bounds_negative(Bounds a);

typedef Bounds BoundsLeaf(const Expr *leaf, void *context);
/* Returns the range of an expression; `leaf` returns the range of each non-number leaf. */
Bounds bounds_of(const Expr *expr, BoundsLeaf *leaf, void *context);
