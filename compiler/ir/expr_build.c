/* Constructors that simplify, and derivatives. */
#include "ir/expr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Expr *expr_number(Arena *arena, double number, const char *spelling)
{
    if (!spelling && number > -1e15 && number < 1e15 && number == (double)(int64_t)number)
        spelling = arena_format(arena, "%.0f", number);
    if (!spelling) {
        char digits[40];
        for (int precision = 6; precision <= 17; precision++) {
            snprintf(digits, sizeof digits, "%.*g", precision, number);
            if (strtod(digits, NULL) == number)
                break;
        }
        spelling = arena_string(arena, digits);
    }
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = EXPR_NUMBER, .number = number, .spelling = spelling};
    return expr;
}

const Expr *expr_leaf(Arena *arena, ExprKind kind, int index)
{
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = kind, .index = index};
    return expr;
}

static bool is_number(const Expr *expr, double number) { return expr->kind == EXPR_NUMBER && expr->number == number; }

static const Expr *node(Arena *arena, ExprKind kind, int count, const Expr *a, const Expr *b, const Expr *c)
{
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = kind, .arg_count = count, .arg = {a, b, c}};
    return expr;
}

const Expr *expr_negative(Arena *arena, const Expr *a)
{
    if (a->kind == EXPR_NEG)
        return a->arg[0];
    if (is_number(a, 0))
        return a;
    if (a->kind == EXPR_SUB)
        return expr_binary(arena, EXPR_SUB, a->arg[1], a->arg[0]);
    return node(arena, EXPR_NEG, 1, a, NULL, NULL);
}

static const Expr *sum(Arena *arena, const Expr *a, const Expr *b)
{
    if (is_number(a, 0))
        return b;
    if (is_number(b, 0))
        return a;
    if (b->kind == EXPR_NEG)
        return expr_binary(arena, EXPR_SUB, a, b->arg[0]);
    return node(arena, EXPR_ADD, 2, a, b, NULL);
}

static const Expr *difference(Arena *arena, const Expr *a, const Expr *b)
{
    if (is_number(b, 0))
        return a;
    if (is_number(a, 0))
        return expr_negative(arena, b);
    if (b->kind == EXPR_NEG)
        return sum(arena, a, b->arg[0]);
    return node(arena, EXPR_SUB, 2, a, b, NULL);
}

static const Expr *product(Arena *arena, const Expr *a, const Expr *b)
{
    if (is_number(a, 0) || is_number(b, 1))
        return a;
    if (is_number(b, 0) || is_number(a, 1))
        return b;
    if (a->kind == EXPR_NEG)
        return expr_negative(arena, product(arena, a->arg[0], b));
    if (b->kind == EXPR_NEG)
        return expr_negative(arena, product(arena, a, b->arg[0]));
    if (b->kind == EXPR_SELECT && (is_number(b->arg[1], 0) || is_number(b->arg[2], 0)))
        return expr_select(arena, b->arg[0], product(arena, a, b->arg[1]), product(arena, a, b->arg[2]));
    if (b->kind == EXPR_DIV && is_number(b->arg[0], 1))
        return expr_binary(arena, EXPR_DIV, a, b->arg[1]);
    return node(arena, EXPR_MUL, 2, a, b, NULL);
}

/* Of derivatives: a numerator such as 1 is a floating-point number, or C would divide integers. */
static const Expr *quotient(Arena *arena, const Expr *a, const Expr *b)
{
    if (is_number(a, 0) || is_number(b, 1))
        return a;
    if (a->kind == EXPR_NUMBER && !strpbrk(a->spelling, ".eEfF"))
        a = expr_number(arena, a->number, arena_format(arena, "%s.0f", a->spelling));
    if (a->kind == EXPR_NEG)
        return expr_negative(arena, quotient(arena, a->arg[0], b));
    return node(arena, EXPR_DIV, 2, a, b, NULL);
}

const Expr *expr_binary(Arena *arena, ExprKind kind, const Expr *a, const Expr *b)
{
    switch (kind) {
    case EXPR_ADD: return sum(arena, a, b);
    case EXPR_SUB: return difference(arena, a, b);
    case EXPR_MUL: return product(arena, a, b);
    case EXPR_DIV: return quotient(arena, a, b);
    default: return node(arena, kind, 2, a, b, NULL);
    }
}

const Expr *expr_select(Arena *arena, const Expr *condition, const Expr *a, const Expr *b)
{
    if (expr_equal(a, b))
        return a;
    return node(arena, EXPR_SELECT, 3, condition, a, b);
}

const Expr *expr_call(Arena *arena, const char *name, const Expr *const *args, int count)
{
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = EXPR_CALL, .spelling = name, .arg_count = count};
    for (int i = 0; i < count; i++)
        expr->arg[i] = args[i];
    return expr;
}

/* ---- functions of math.h ---- */

/* The derivatives by the arguments a and b, in which y is the function's own value. Functions of float; their twins of double follow. */
typedef struct MathFunction {
    const char *name;
    const char *derivative[2];
} MathFunction;

static const MathFunction functions[] = {
    {"expf", {"y"}},
    {"exp2f", {"0.6931471805599453f * y"}},
    {"expm1f", {"y + 1"}},
    {"logf", {"1 / a"}},
    {"log2f", {"1.4426950408889634f / a"}},
    {"log10f", {"0.4342944819032518f / a"}},
    {"log1pf", {"1 / (1 + a)"}},
    {"sqrtf", {"0.5f / y"}},
    {"cbrtf", {"y / (3 * a)"}},
    {"powf", {"b * powf(a, b - 1)", "y * logf(a)"}},
    {"fabsf", {"a > 0 ? 1 : a < 0 ? -1 : 0"}},
    {"sinf", {"cosf(a)"}},
    {"cosf", {"-sinf(a)"}},
    {"tanf", {"1 + y * y"}},
    {"asinf", {"1 / sqrtf(1 - a * a)"}},
    {"acosf", {"-1 / sqrtf(1 - a * a)"}},
    {"atanf", {"1 / (1 + a * a)"}},
    {"sinhf", {"coshf(a)"}},
    {"coshf", {"sinhf(a)"}},
    {"tanhf", {"1 - y * y"}},
    {"erff", {"1.1283791670955126f * expf(-(a * a))"}},
    {"erfcf", {"-1.1283791670955126f * expf(-(a * a))"}},
    {"fmaxf", {"a > b ? 1 : 0", "a > b ? 0 : 1"}},
    {"fminf", {"a < b ? 1 : 0", "a < b ? 0 : 1"}},
    {"hypotf", {"a / y", "b / y"}},
    {"floorf", {"0"}},
    {"ceilf", {"0"}},
    {"roundf", {"0"}},
    {"rintf", {"0"}},
    {"truncf", {"0"}},
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

/* The table's entry for a name, of float or of double; NULL when there is none. */
static const MathFunction *find_function(const char *name, bool *wide)
{
    size_t length = strlen(name);
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        const char *single = functions[i].name;
        bool twin = strlen(single) == length + 1 && !strncmp(single, name, length);
        if (twin || !strcmp(single, name)) {
            *wide = twin;
            return &functions[i];
        }
    }
    return NULL;
}

int expr_function_arity(const char *name)
{
    bool wide;
    const MathFunction *function = find_function(name, &wide);
    return function ? 1 + (function->derivative[1] != NULL) : 0;
}

const char *const *expr_function_names(void)
{
    static const char *names[FUNCTION_COUNT + 1];
    for (int i = 0; i < FUNCTION_COUNT; i++)
        names[i] = functions[i].name;
    return names;
}

/* What a, b and y of the table stand for. */
typedef struct Substitution {
    const Expr *a, *b, *y;
} Substitution;

static const Expr *substitute(Lexer *lexer, void *context)
{
    const Substitution *with = context;
    char name = *lexer->token.start;
    lex_next(lexer);
    return name == 'a' ? with->a : name == 'b' ? with->b : with->y;
}

/* The name or number of float without its last letter f. */
static const char *without_suffix(Arena *arena, const char *spelling)
{
    size_t length = strlen(spelling);
    return length && spelling[length - 1] == 'f' ? arena_substring(arena, spelling, length - 1) : spelling;
}

/* A derivative from the table turned to double; `stop` are the parts that came from outside it. */
static const Expr *widen(Arena *arena, const Expr *expr, const Substitution *stop)
{
    if (expr == stop->a || expr == stop->b || expr == stop->y)
        return expr;
    Expr *copy = arena_copy(arena, expr, sizeof *expr);
    if (expr->kind == EXPR_NUMBER || expr->kind == EXPR_CALL)
        copy->spelling = without_suffix(arena, expr->spelling);
    for (int i = 0; i < expr->arg_count; i++)
        copy->arg[i] = widen(arena, expr->arg[i], stop);
    return copy;
}

/* The derivative of a call by its argument `which`. */
static const Expr *outer_derivative(Arena *arena, const Expr *call, int which)
{
    bool wide;
    const MathFunction *function = find_function(call->spelling, &wide);
    if (!function || !function->derivative[which])
        BUG("no derivative of %s", call->spelling);
    Substitution with = {call->arg[0], call->arg[1], call};
    Lexer lexer;
    lex_begin(&lexer, arena, NULL, (Position){0}, function->derivative[which], false);
    const Expr *derivative = expr_parse(&lexer, substitute, &with);
    return wide ? widen(arena, derivative, &with) : derivative;
}

static const Expr *call_derivative(Arena *arena, const Expr *call, int operand)
{
    const Expr *total = expr_number(arena, 0, NULL);
    for (int i = 0; i < call->arg_count; i++) {
        const Expr *inner = expr_derivative(arena, call->arg[i], operand);
        if (!is_number(inner, 0))
            total = sum(arena, total, product(arena, inner, outer_derivative(arena, call, i)));
    }
    return total;
}

const Expr *expr_derivative(Arena *arena, const Expr *expr, int operand)
{
    const Expr *const *arg = expr->arg;
    if (!expr_mentions(expr, EXPR_ACCESS, operand))
        return expr_number(arena, 0, NULL);
    switch (expr->kind) {
    case EXPR_ACCESS: return expr_number(arena, 1, NULL);
    case EXPR_NEG: return expr_negative(arena, expr_derivative(arena, arg[0], operand));
    case EXPR_ADD:
    case EXPR_SUB: return expr_binary(arena, expr->kind, expr_derivative(arena, arg[0], operand), expr_derivative(arena, arg[1], operand));
    case EXPR_MUL:
        return sum(arena, product(arena, expr_derivative(arena, arg[0], operand), arg[1]),
                   product(arena, arg[0], expr_derivative(arena, arg[1], operand)));
    case EXPR_DIV: // (a / b)' = (a' - (a / b) * b') / b
        return quotient(
            arena,
            difference(arena, expr_derivative(arena, arg[0], operand), product(arena, expr, expr_derivative(arena, arg[1], operand))),
            arg[1]);
    case EXPR_SELECT: return expr_select(arena, arg[0], expr_derivative(arena, arg[1], operand), expr_derivative(arena, arg[2], operand));
    case EXPR_CALL: return call_derivative(arena, expr, operand);
    default: // comparisons and remainders are constant between their steps
        return expr_number(arena, 0, NULL);
    }
}
