/* Symbolic derivatives that stay finite in floating point. In 1 / (1 + expf(-x)) at x = -100 the
 * exponential overflows, but the value is finite (0); its derivative must then be 0, not NaN. Three
 * rules ensure this:
 *
 *   a / b         if the quotient is 0, b may be infinite: b' then contributes 0
 *   f(a)          if the derivative of f is 0 (saturation), a' may be infinite: the product is
 *                 then 0
 *   exponentials  b' / b is simplified as one expression, term by term: e / (1 + e) becomes
 *                 1 / (1 + 1 / e)
 */
#include "rule/gradient.h"

#include "syntax/tokens.h"
#include "syntax/lex.h"

#include <string.h>

/* Returns the table's entry for a call; sets *wide if the call is of the double variant. */
static const MathFunction *function_of(const Expr *call, bool *wide) {
    const MathFunction *function = math_function(call->spelling, wide);
    if (!function) BUG("no derivative of %s", call->spelling);
    return function;
}

static bool has_trait(const Expr *call, int traits) {
    bool wide;
    return function_of(call, &wide)->traits & traits;
}

/* ---- the table's expressions ---- */

/* The expressions that a, b and y of the table stand for. */
typedef struct Substitution {
    const Expr *a, *b, *y;
} Substitution;

static const Expr *substitute(Tokens *tokens, void *context) {
    const Substitution *with = context;
    char name = *tokens->token->start;
    tokens_next(tokens);
    return name == 'a' ? with->a : name == 'b' ? with->b : with->y;
}

/* Returns the name or number without its suffix f. */
static const char *without_suffix(Arena *arena, const char *spelling) {
    size_t length = strlen(spelling);
    return length && spelling[length - 1] == 'f' ? arena_substring(arena, spelling, length - 1)
                                                 : spelling;
}

/* Returns a float expression converted to double. Does not change the parts in `stop`. */
static const Expr *widen(Arena *arena, const Expr *expr, const Substitution *stop) {
    bool wide = false;
    if (expr == stop->a || expr == stop->b || expr == stop->y) return expr;
    Expr *copy = arena_copy(arena, expr, sizeof *expr);
    if (expr->kind == EXPR_NUMBER ||
        (expr->kind == EXPR_CALL && math_function(expr->spelling, &wide) && !wide))
        copy->spelling = without_suffix(arena, expr->spelling);
    for (int i = 0; i < expr->arg_count; i++) copy->arg[i] = widen(arena, expr->arg[i], stop);
    return copy;
}

const Expr *expr_widened(Arena *arena, const Expr *expr) {
    return widen(arena, expr, &(Substitution){0});
}

/* Parses an expression of the table, with a call's arguments for a and b, and the call for y. */
static const Expr *of_call(Arena *arena, const Expr *call, const char *text, bool wide) {
    Substitution with = {call->arg[0], call->arg[1], call};
    Tokens tokens = tokens_of(arena, NULL, (Position){0}, text);
    const Expr *expr = expr_parse(&tokens, substitute, &with);
    return wide ? widen(arena, expr, &with) : expr;
}

/* ---- simplified sums and products, and integer arithmetic ---- */

static bool is_zero(const Expr *expr) { return expr->kind == EXPR_NUMBER && expr->number == 0; }
static const Expr *zero(Arena *arena) { return expr_number(arena, 0, NULL); }

static const Expr *sum(Arena *arena, const Expr *a, const Expr *b) {
    return expr_binary(arena, EXPR_ADD, a, b);
}
static const Expr *difference(Arena *arena, const Expr *a, const Expr *b) {
    return expr_binary(arena, EXPR_SUB, a, b);
}
static const Expr *product(Arena *arena, const Expr *a, const Expr *b) {
    return expr_binary(arena, EXPR_MUL, a, b);
}

/* The operand to differentiate by; bit i of `integers`: operand i has integer elements. */
typedef struct By {
    int operand;
    uint64_t integers;
} By;

static bool depends(const Expr *expr, By by) {
    return expr_mentions(expr, EXPR_ACCESS, by.operand);
}

/* Returns whether C computes the expression in integer arithmetic. */
static bool is_integral(const Expr *expr, By by) {
    switch (expr->kind) {
    case EXPR_NUMBER: return !strpbrk(expr->spelling, ".eEfF");
    case EXPR_ACCESS: return by.integers >> expr->index & 1;
    case EXPR_CALL: return false;
    case EXPR_SELECT: return is_integral(expr->arg[1], by) && is_integral(expr->arg[2], by);
    case EXPR_NEG: return is_integral(expr->arg[0], by);
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV: return is_integral(expr->arg[0], by) && is_integral(expr->arg[1], by);
    default: return true;
    }
}

/* Returns an integer expression converted to float. */
static const Expr *floating(Arena *arena, const Expr *expr) {
    if (expr->kind == EXPR_NUMBER)
        return expr_number(arena, expr->number, arena_format(arena, "%.1ff", expr->number));
    return expr_node(arena, EXPR_MUL, expr_number(arena, 1, "1.0f"), expr, NULL);
}

/* Returns a / b in floating point, also where both are integers. */
static const Expr *quotient(Arena *arena, By by, const Expr *a, const Expr *b) {
    if (!is_zero(a) && a->kind != EXPR_NUMBER && is_integral(a, by) && is_integral(b, by))
        a = floating(arena, a);
    return expr_binary(arena, EXPR_DIV, a, b);
}

static bool is_small(ExprKind kind, const Expr *a, const Expr *b) {
    double value = kind == EXPR_MUL   ? a->number * b->number
                   : kind == EXPR_ADD ? a->number + b->number
                                      : a->number - b->number;
    return a->kind == EXPR_NUMBER && b->kind == EXPR_NUMBER && value <= INT32_MAX &&
           value >= -INT32_MAX;
}

/* Returns a sum, difference or product, in floating point if integers might overflow. */
static const Expr *combined(Arena *arena, By by, ExprKind kind, const Expr *a, const Expr *b) {
    const Expr *all = expr_binary(arena, kind, a, b);
    if (all == a || all == b || is_small(kind, a, b) || !is_integral(a, by) || !is_integral(b, by))
        return all;
    return expr_binary(arena, kind, floating(arena, a), b);
}

/* ---- products with factors that may be infinite ---- */

static bool stays_finite(const Expr *expr) {
    switch (expr->kind) {
    case EXPR_NUMBER:
    case EXPR_ACCESS:
    case EXPR_ATTR:
    case EXPR_SIZE: return true;
    case EXPR_NEG: return stays_finite(expr->arg[0]);
    case EXPR_SELECT: return stays_finite(expr->arg[1]) && stays_finite(expr->arg[2]);
    default: return false;
    }
}

/* Returns whether an expression becomes infinite only by overflow, not at a singularity. */
static bool is_smooth(const Expr *expr) {
    if (expr->kind == EXPR_DIV && expr_mentions(expr->arg[1], EXPR_ACCESS, -1)) return false;
    if (expr->kind == EXPR_CALL && has_trait(expr, SINGULAR)) return false;
    for (int i = 0; i < expr->arg_count; i++)
        if (!is_smooth(expr->arg[i])) return false;
    return true;
}

/* Returns factor * expr, as an expression that is 0 if the factor is 0 and `expr` is infinite. */
static const Expr *vanishing(Arena *arena, const Expr *factor, const Expr *expr) {
    const Expr *all = product(arena, expr, factor);
    if (stays_finite(expr)) return all;
    const Expr *args[] = {factor, zero(arena)};
    return expr_select(arena, expr_binary(arena, EXPR_NE, args[0], args[1]), all, args[1]);
}

/* ---- exponentials ---- */

/* Returns whether an expression grows exponentially: it overflows while expr' / expr is small. */
static bool grows(const Expr *expr, By by) {
    bool wide, any = false, all = true;
    if (!depends(expr, by)) return false;
    for (int i = 0; i < expr->arg_count; i++) {
        bool constant = !depends(expr->arg[i], by), growing = grows(expr->arg[i], by);
        any |= growing;
        all &= growing || constant;
    }
    switch (expr->kind) {
    case EXPR_CALL: return function_of(expr, &wide)->relative;
    case EXPR_NEG:
    case EXPR_MUL:
    case EXPR_DIV: return all;
    case EXPR_ADD:
    case EXPR_SUB: return any;
    default: return false;
    }
}

static const Expr *derivative(Arena *arena, const Expr *expr, By by);
static const Expr *relative(Arena *arena, const Expr *weight, const Expr *expr, By by);

/* An expression and the terms that it is the sum of. */
typedef struct Sum {
    const Expr *total;
    const ExprTerm *terms;
    int count;
} Sum;

/* Returns weight * term' / total for term `at` of a sum. */
static const Expr *term_relative(Arena *arena, const Expr *weight, const Sum *of, int at, By by) {
    const ExprTerm *terms = of->terms;
    const Expr *term = terms[at].expr, *total = of->total, *rest = zero(arena);
    if (!grows(term, by)) {
        const Expr *own = derivative(arena, term, by);
        return quotient(
            arena, by,
            vanishing(arena, weight, terms[at].negative ? expr_negative(arena, own) : own), total);
    }
    // (term' / term) / (1 + rest / term), where `rest` is the sum of the other terms
    for (int i = 0; i < of->count; i++)
        if (i != at)
            rest = expr_binary(arena, terms[i].negative == terms[at].negative ? EXPR_ADD : EXPR_SUB,
                               rest, terms[i].expr);
    return relative(
        arena,
        quotient(arena, by, weight,
                 sum(arena, expr_number(arena, 1, NULL), quotient(arena, by, rest, term))),
        term, by);
}

static const Expr *sum_relative(Arena *arena, const Expr *weight, const Expr *expr, By by) {
    int count = expr_terms(expr, NULL, 0);
    ExprTerm *terms = arena_array(arena, ExprTerm, count);
    Sum of = {expr, terms, count};
    const Expr *total = zero(arena);
    expr_terms(expr, terms, count);
    for (int i = 0; i < count; i++)
        if (depends(terms[i].expr, by))
            total = sum(arena, total, term_relative(arena, weight, &of, i, by));
    return total;
}

/* Returns weight * expr' / expr, for an expression that grows exponentially or is constant. */
static const Expr *relative(Arena *arena, const Expr *weight, const Expr *expr, By by) {
    bool wide;
    const Expr *const *arg = expr->arg;
    if (!depends(expr, by)) return zero(arena);
    switch (expr->kind) {
    case EXPR_NEG: return relative(arena, weight, arg[0], by);
    case EXPR_MUL:
        return sum(arena, relative(arena, weight, arg[0], by), relative(arena, weight, arg[1], by));
    case EXPR_DIV:
        return difference(arena, relative(arena, weight, arg[0], by),
                          relative(arena, weight, arg[1], by));
    case EXPR_CALL: {
        const MathFunction *function = function_of(expr, &wide);
        return vanishing(arena,
                         product(arena, weight, of_call(arena, expr, function->relative, wide)),
                         derivative(arena, arg[0], by));
    }
    default: return sum_relative(arena, weight, expr, by);
    }
}

/* ---- derivatives ---- */

static const Expr *quotient_derivative(Arena *arena, const Expr *expr, By by) {
    const Expr *const *arg = expr->arg, *over = derivative(arena, arg[0], by);
    if (grows(arg[1], by)) // a' / b - (a / b) * (b' / b)
        return difference(arena, quotient(arena, by, over, arg[1]),
                          relative(arena, expr, arg[1], by));
    const Expr *under = derivative(arena, arg[1], by); // (a' - (a / b) * b') / b
    return quotient(arena, by, difference(arena, over, vanishing(arena, expr, under)), arg[1]);
}

/* Returns whether a condition compares two numbers; writes the condition's value to *holds. */
static bool is_decided(const Expr *condition, bool *holds) {
    bool numbers = condition->arg_count == 2 && condition->arg[0]->kind == EXPR_NUMBER &&
                   condition->arg[1]->kind == EXPR_NUMBER;
    double a = numbers ? condition->arg[0]->number : 0, b = numbers ? condition->arg[1]->number : 0;
    switch (condition->kind) {
    case EXPR_EQ: *holds = a == b; return numbers;
    case EXPR_LT: *holds = a < b; return numbers;
    case EXPR_GT: *holds = a > b; return numbers;
    case EXPR_GE: *holds = a >= b; return numbers;
    default: return false;
    }
}

/* Returns inner * outer (chain rule); `outer` is the derivative of a function with these traits. */
static const Expr *chained(Arena *arena, const Expr *inner, const Expr *outer, int traits) {
    bool holds;
    if (outer->kind == EXPR_SELECT && is_decided(outer->arg[0], &holds))
        return chained(arena, inner, outer->arg[holds ? 1 : 2], traits);
    if (outer->kind == EXPR_SELECT)
        return expr_select(arena, outer->arg[0], chained(arena, inner, outer->arg[1], traits),
                           chained(arena, inner, outer->arg[2], traits));
    bool settles = traits & SETTLES_FAST || (traits & SETTLES && is_smooth(inner));
    return settles && !is_zero(outer) ? vanishing(arena, outer, inner)
                                      : product(arena, inner, outer);
}

static const Expr *call_derivative(Arena *arena, const Expr *call, By by) {
    bool wide;
    const MathFunction *function = function_of(call, &wide);
    const Expr *total = zero(arena);
    for (int i = 0; i < call->arg_count; i++) {
        const Expr *inner = derivative(arena, call->arg[i], by),
                   *outer = of_call(arena, call, function->derivative[i], wide);
        if (is_zero(inner)) continue;
        if (function->traits & LOGARITHM && grows(outer->arg[1], by))
            total = relative(arena, outer->arg[0], outer->arg[1], by);
        else total = sum(arena, total, chained(arena, inner, outer, function->traits));
    }
    return total;
}

static const Expr *derivative(Arena *arena, const Expr *expr, By by) {
    const Expr *const *arg = expr->arg;
    if (!depends(expr, by)) return zero(arena);
    switch (expr->kind) {
    case EXPR_ACCESS: return expr_number(arena, 1, NULL);
    case EXPR_NEG: return expr_negative(arena, derivative(arena, arg[0], by));
    case EXPR_ADD:
    case EXPR_SUB:
        return combined(arena, by, expr->kind, derivative(arena, arg[0], by),
                        derivative(arena, arg[1], by));
    case EXPR_MUL:
        return sum(arena, combined(arena, by, EXPR_MUL, derivative(arena, arg[0], by), arg[1]),
                   combined(arena, by, EXPR_MUL, arg[0], derivative(arena, arg[1], by)));
    case EXPR_DIV: return quotient_derivative(arena, expr, by);
    case EXPR_SELECT:
        return expr_select(arena, arg[0], derivative(arena, arg[1], by),
                           derivative(arena, arg[2], by));
    case EXPR_CALL: return call_derivative(arena, expr, by);
    default: // comparisons and remainders are piecewise constant
        return zero(arena);
    }
}

const Expr *expr_derivative(Arena *arena, const Expr *expr, int operand, uint64_t integers) {
    return derivative(arena, expr, (By){operand, integers});
}
