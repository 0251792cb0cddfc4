/* Exact fractions: where cuts fall, as parts of the interval [0, 1). */
#ifndef LAYOUT_FRACTION_H
#define LAYOUT_FRACTION_H

#include <stdint.h>

typedef struct Fraction {
    int64_t num, den; // in lowest terms, den > 0
} Fraction;

static const Fraction FRACTION_ZERO = {0, 1}, FRACTION_ONE = {1, 1};

/* num / den in lowest terms. */
Fraction fraction_make(__int128 num, __int128 den);

/* a + (b - a) * t: the place t between a and b. */
Fraction fraction_between(Fraction a, Fraction b, Fraction t);

/* a + b; a - b, where b is at most a. */
Fraction fraction_add(Fraction a, Fraction b);
Fraction fraction_subtract(Fraction a, Fraction b);

/* Negative, zero or positive as a is below, at or above b. */
int fraction_compare(Fraction a, Fraction b);

/* floor(n * a). */
int64_t fraction_floor(Fraction a, int64_t n);

#endif
