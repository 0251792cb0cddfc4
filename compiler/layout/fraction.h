/* Exact fractions: the places of cuts in the interval [0, 1].
 *
 * A dimension of 10 cut by 3: pieces [0, 3), [3, 6), [6, 10), since 10/3 is rounded down. */
#ifndef LAYOUT_FRACTION_H
#define LAYOUT_FRACTION_H

#include <stdint.h>

typedef struct Fraction {
    int64_t num, den; // in lowest terms, den > 0
} Fraction;

static const Fraction FRACTION_ZERO = {0, 1}, FRACTION_ONE = {1, 1};

/* Returns num / den in lowest terms. */
Fraction fraction_make(__int128 num, __int128 den);

/* Returns a + (b - a) * t: a for t = 0, b for t = 1. */
Fraction fraction_between(Fraction a, Fraction b, Fraction t);

/* Return a + b, and a - b for b <= a. */
Fraction fraction_add(Fraction a, Fraction b);
Fraction fraction_subtract(Fraction a, Fraction b);

/* Returns a negative number if a < b, zero if a = b, a positive number if a > b. */
int fraction_compare(Fraction a, Fraction b);

/* Returns floor(n * a). */
int64_t fraction_floor(Fraction a, int64_t n);

#endif
