/* Interval arithmetic on expressions of rules. */
#include "rule/bounds.h"

#include <float.h>
#include <math.h>
#include <string.h>

Bounds bounds_between(double low, double high) {
    return isnan(low) || isnan(high) ? bounds_open() : (Bounds){.low = low, .high = high};
}

Bounds bounds_number(double number) { return bounds_between(number, number); }

Bounds bounds_finite(void) { return (Bounds){.low = -DBL_MAX, .high = DBL_MAX}; }

Bounds bounds_open(void) { return (Bounds){.low = -INFINITY, .high = INFINITY, .open = true}; }

bool bounds_is(Bounds range, double number) {
    return !range.open && range.low == number && range.high == number;
}

static bool is_point(Bounds range) { return !range.open && range.low == range.high; }

static bool is_finite(Bounds range) {
    return !range.open && range.low >= -DBL_MAX && range.high <= DBL_MAX;
}

Bounds bounds_hull(Bounds a, Bounds b) {
    return a.open || b.open ? bounds_open()
                            : bounds_between(fmin(a.low, b.low), fmax(a.high, b.high));
}

/* Makes a bound finite if `finite`: finite operands are taken to give finite results. */
static double clamped(double bound, bool finite) {
    return finite ? fmax(-DBL_MAX, fmin(DBL_MAX, bound)) : bound;
}

Bounds bounds_sum(Bounds a, Bounds b) {
    bool finite = is_finite(a) && is_finite(b);
    if (a.open || b.open) return bounds_open();
    return bounds_between(clamped(a.low + b.low, finite), clamped(a.high + b.high, finite));
}

Bounds bounds_negative(Bounds a) { return a.open ? a : bounds_between(-a.high, -a.low); }

static Bounds product(Bounds a, Bounds b) {
    if (!is_finite(a) || !is_finite(b))
        return is_point(a) && is_point(b) ? bounds_number(a.low * b.low) : bounds_open();
    double corner[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    Bounds range = bounds_number(clamped(corner[0], true));
    for (int i = 1; i < 4; i++) range = bounds_hull(range, bounds_number(clamped(corner[i], true)));
    return range;
}

/* Returns the range of a / b. The range includes the truncated quotient of integers in C. */
static Bounds quotient(Bounds a, Bounds b) {
    if (is_point(a) && is_point(b))
        return bounds_hull(bounds_number(a.low / b.low), bounds_number(trunc(a.low / b.low)));
    if (bounds_is(a, 0) && !b.open) return bounds_number(0);
    if (!is_finite(a) || !is_finite(b)) return bounds_open();
    return bounds_finite();
}

static Bounds remainder_of(Bounds a, Bounds b) {
    if (is_point(a) && is_point(b)) return bounds_number(fmod(a.low, b.low));
    return is_finite(a) && is_finite(b) ? bounds_finite() : bounds_open();
}

static Bounds truth(bool certain, bool impossible) {
    return bounds_between(certain ? 1 : 0, impossible ? 0 : 1);
}

static Bounds compared(ExprKind kind, Bounds a, Bounds b) {
    bool same = is_point(a) && is_point(b) && a.low == b.low,
         apart = a.high < b.low || b.high < a.low;
    if (a.open || b.open) return bounds_between(0, 1);
    switch (kind) {
    case EXPR_LT: return truth(a.high < b.low, a.low >= b.high);
    case EXPR_LE: return truth(a.high <= b.low, a.low > b.high);
    case EXPR_GT: return truth(a.low > b.high, a.high <= b.low);
    case EXPR_GE: return truth(a.low >= b.high, a.high < b.low);
    case EXPR_EQ: return truth(same, apart);
    default: return truth(apart, same);
    }
}

static Bounds selected(Bounds condition, Bounds a, Bounds b) {
    if (bounds_is(condition, 0)) return b;
    bool holds = !condition.open && (condition.low > 0 || condition.high < 0);
    return holds ? a : bounds_hull(a, b);
}

/* A function of one argument; `rising`: it never decreases. */
typedef struct MathFunction {
    const char *name;
    double (*value)(double);
    bool rising;
} MathFunction;

static const MathFunction functions[] = {
    {"exp", exp, true},    {"exp2", exp2, true},    {"expm1", expm1, true},  {"log", log, false},
    {"log2", log2, false}, {"log10", log10, false}, {"log1p", log1p, false}, {"sqrt", sqrt, false},
    {"cbrt", cbrt, true},  {"fabs", fabs, false},   {"sin", sin, false},     {"cos", cos, false},
    {"tan", tan, false},   {"asin", asin, false},   {"acos", acos, false},   {"atan", atan, true},
    {"sinh", sinh, true},  {"cosh", cosh, false},   {"tanh", tanh, true},    {"erf", erf, true},
    {"erfc", erfc, false}, {"floor", floor, true},  {"ceil", ceil, true},    {"round", round, true},
    {"rint", rint, true},  {"trunc", trunc, true}};

/* Returns whether `function` is `name` or its float variant (`exp`, `expf`). */
static bool is_called(const char *function, const char *name) {
    size_t length = strlen(name);
    return !strncmp(function, name, length) &&
           (!function[length] || !strcmp(function + length, "f"));
}

static Bounds of_one(const char *name, Bounds a) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (is_called(name, functions[i].name)) {
            if (is_point(a)) return bounds_number(functions[i].value(a.low));
            if (functions[i].rising && !a.open)
                return bounds_between(clamped(functions[i].value(a.low), is_finite(a)),
                                      clamped(functions[i].value(a.high), is_finite(a)));
        }
    return is_finite(a) ? bounds_finite() : bounds_open();
}

static Bounds of_two(const char *name, Bounds a, Bounds b) {
    if (a.open || b.open) return bounds_open();
    if (is_called(name, "fmax")) return bounds_between(fmax(a.low, b.low), fmax(a.high, b.high));
    if (is_called(name, "fmin")) return bounds_between(fmin(a.low, b.low), fmin(a.high, b.high));
    if (is_called(name, "pow") && is_point(a) && is_point(b))
        return bounds_number(pow(a.low, b.low));
    return is_finite(a) && is_finite(b) ? bounds_finite() : bounds_open();
}

Bounds bounds_of(const Expr *expr, BoundsLeaf *leaf, void *context) {
    Bounds of[3];
    if (expr->kind == EXPR_NUMBER) return bounds_number(expr->number);
    if (!expr->arg_count && expr->kind != EXPR_CALL) return leaf(expr, context);
    for (int i = 0; i < expr->arg_count; i++) of[i] = bounds_of(expr->arg[i], leaf, context);
    switch (expr->kind) {
    case EXPR_NEG: return bounds_negative(of[0]);
    case EXPR_ADD: return bounds_sum(of[0], of[1]);
    case EXPR_SUB: return bounds_sum(of[0], bounds_negative(of[1]));
    case EXPR_MUL: return product(of[0], of[1]);
    case EXPR_DIV: return quotient(of[0], of[1]);
    case EXPR_MOD: return remainder_of(of[0], of[1]);
    case EXPR_SELECT: return selected(of[0], of[1], of[2]);
    case EXPR_CALL:
        return expr->arg_count == 1   ? of_one(expr->spelling, of[0])
               : expr->arg_count == 2 ? of_two(expr->spelling, of[0], of[1])
                                      : bounds_open();
    default: return compared(expr->kind, of[0], of[1]);
    }
}
