/* Bounds: between which numbers an expression lies whose parts are known as far.
 *
 * A number that nothing is known of is finite, and is none of those for which a program would
 * compute what is no number: 0 * x is 0, and 0 / x is. Where an infinite number may come in, that
 * does not hold.
 */
#ifndef RULE_BOUNDS_H
#define RULE_BOUNDS_H

#include "rule/expr.h"

/* All numbers from low to high; `open`: it may be anything, or no number. */
typedef struct Bounds {
    double low, high;
    bool open;
} Bounds;

Bounds bounds_number(double number);
Bounds bounds_between(double low, double high);
Bounds bounds_finite(void);
Bounds bounds_open(void);

/* Whether it is one number, this one. */
bool bounds_is(Bounds range, double number);

/* The range of what is in one or in the other. */
Bounds bounds_hull(Bounds a, Bounds b);

/* The range of a + b, and of -a. */
Bounds bounds_sum(Bounds a, Bounds b);
Bounds bounds_negative(Bounds a);

/* The range of an expression whose leaves (all but numbers) lie in what `leaf` gives. */
typedef Bounds BoundsLeaf(const Expr *leaf, void *context);
Bounds bounds_of(const Expr *expr, BoundsLeaf *leaf, void *context);

#endif
