/* Constructors that simplify. */
#include "rule/expr.h"

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

/* Whether an expression is, under some condition, the number 0. */
static bool selects_zero(const Expr *expr)
{
    if (expr->kind != EXPR_SELECT)
        return false;
    for (int i = 1; i <= 2; i++)
        if (is_number(expr->arg[i], 0) || selects_zero(expr->arg[i]))
            return true;
    return false;
}

/* Whether C reads a number as one of floating point. */
static bool is_floating(const Expr *number) { return strpbrk(number->spelling, ".eEfF"); }

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
    if (selects_zero(a))
        return expr_select(arena, a->arg[0], product(arena, a->arg[1], b), product(arena, a->arg[2], b));
    if (selects_zero(b))
        return expr_select(arena, b->arg[0], product(arena, a, b->arg[1]), product(arena, a, b->arg[2]));
    if (b->kind == EXPR_DIV && is_number(b->arg[0], 1) && is_floating(b->arg[0])) // 1 / 2 is 0 in C
        return expr_binary(arena, EXPR_DIV, a, b->arg[1]);
    return node(arena, EXPR_MUL, 2, a, b, NULL);
}

/* Of derivatives: a numerator such as 1 is a floating-point number, or C would divide integers. */
static const Expr *quotient(Arena *arena, const Expr *a, const Expr *b)
{
    if (is_number(a, 0) || is_number(b, 1))
        return a;
    if (a->kind == EXPR_NUMBER && !is_floating(a))
        a = expr_number(arena, a->number, arena_format(arena, "%.1ff", a->number));
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
