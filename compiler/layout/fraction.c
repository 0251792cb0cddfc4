/* Computes with exact fractions. Only fraction_floor rounds (down, to a whole element). */
#include "layout/zigzag.h"

#include "support/diag.h"

static __int128 common_divisor(__int128 a, __int128 b) {
    while (b) {
        if (a <= INT64_MAX && b <= INT64_MAX) {
            int64_t x = (int64_t)a, y = (int64_t)b;
            while (y) {
                int64_t rest = x % y;
                x = y, y = rest;
            }
            return x;
        }
        __int128 rest = a % b;
        a = b, b = rest;
    }
    return a;
}

Fraction fraction_make(__int128 num, __int128 den) {
    __int128 divisor = common_divisor(num, den);
    if (num <= INT64_MAX && den <= INT64_MAX)
        return (Fraction){(int64_t)num / (int64_t)divisor, (int64_t)den / (int64_t)divisor};
    num /= divisor, den /= divisor;
    if (den > INT64_MAX) BUG("a cut has the denominator %g", (double)den);
    return (Fraction){(int64_t)num, (int64_t)den};
}

static bool is_small(Fraction a) { return a.num < (1 << 20) && a.den < (1 << 20); }

/* Returns a + (b - a) t of small fractions: products of three of their numbers fit into 64 bits. */
static Fraction between_small(Fraction a, Fraction b, Fraction t) {
    int64_t step = (b.num * a.den - a.num * b.den) * t.num, num = a.num * b.den * t.den + step,
            den = a.den * b.den * t.den;
    return fraction_make(num, den);
}

Fraction fraction_between(Fraction a, Fraction b, Fraction t) {
    if (t.num == 0) return a;
    if (t.num == t.den) return b;
    if (a.num == 0 && b.num == b.den) return t;
    if (is_small(a) && is_small(b) && is_small(t)) return between_small(a, b, t);
    __int128 width = (__int128)b.num * a.den - (__int128)a.num * b.den;
    Fraction step = fraction_make(width, (__int128)a.den * b.den);
    step = fraction_make((__int128)step.num * t.num, (__int128)step.den * t.den);
    return fraction_make((__int128)a.num * step.den + (__int128)step.num * a.den,
                         (__int128)a.den * step.den);
}

Fraction fraction_add(Fraction a, Fraction b) {
    return fraction_make((__int128)a.num * b.den + (__int128)b.num * a.den,
                         (__int128)a.den * b.den);
}

Fraction fraction_subtract(Fraction a, Fraction b) {
    return fraction_make((__int128)a.num * b.den - (__int128)b.num * a.den,
                         (__int128)a.den * b.den);
}

int fraction_compare(Fraction a, Fraction b) {
    __int128 left = (__int128)a.num * b.den, right = (__int128)b.num * a.den;
    return (left > right) - (left < right);
}

int64_t fraction_floor(Fraction a, int64_t n) { return (int64_t)((__int128)n * a.num / a.den); }
