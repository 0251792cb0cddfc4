/* Makes, simplifies (0 + x, 1 * x), evaluates and prints expressions. derivative.c has derivatives;
 * frontend/eval folds constants of models. */
#include "rule/expr.h"

#include "support/arena.h"
#include "support/diag.h"
#include "support/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- constructors that simplify ---- */

const Expr *expr_number(Arena *arena, double number, const char *spelling) {
    if (!spelling && number > -1e15 && number < 1e15 && number == (double)(int64_t)number)
        spelling = arena_format(arena, "%.0f", number);
    if (!spelling) {
        char digits[40];
        for (int precision = 6; precision <= 17; precision++) {
            snprintf(digits, sizeof digits, "%.*g", precision, number);
            if (strtod(digits, NULL) == number) break;
        }
        spelling = arena_string(arena, digits);
    }
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = EXPR_NUMBER, .number = number, .spelling = spelling};
    return expr;
}

const Expr *expr_leaf(Arena *arena, ExprKind kind, int index) {
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = kind, .index = index};
    return expr;
}

static bool is_number(const Expr *expr, double number) {
    return expr->kind == EXPR_NUMBER && expr->number == number;
}

const Expr *expr_node(Arena *arena, ExprKind kind, const Expr *a, const Expr *b, const Expr *c) {
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = kind, .arg_count = c ? 3 : b ? 2 : 1, .arg = {a, b, c}};
    return expr;
}

const Expr *expr_negative(Arena *arena, const Expr *a) {
    if (a->kind == EXPR_NEG) return a->arg[0];
    if (is_number(a, 0)) return a;
    if (a->kind == EXPR_SUB) return expr_binary(arena, EXPR_SUB, a->arg[1], a->arg[0]);
    return expr_node(arena, EXPR_NEG, a, NULL, NULL);
}

static const Expr *sum(Arena *arena, const Expr *a, const Expr *b) {
    if (is_number(a, 0)) return b;
    if (is_number(b, 0)) return a;
    if (b->kind == EXPR_NEG) return expr_binary(arena, EXPR_SUB, a, b->arg[0]);
    return expr_node(arena, EXPR_ADD, a, b, NULL);
}

static const Expr *difference(Arena *arena, const Expr *a, const Expr *b) {
    if (is_number(b, 0)) return a;
    if (is_number(a, 0)) return expr_negative(arena, b);
    if (b->kind == EXPR_NEG) return sum(arena, a, b->arg[0]);
    return expr_node(arena, EXPR_SUB, a, b, NULL);
}

/* Returns whether a conditional expression has a branch that is the number 0. */
static bool selects_zero(const Expr *expr) {
    if (expr->kind != EXPR_SELECT) return false;
    for (int i = 1; i <= 2; i++)
        if (is_number(expr->arg[i], 0) || selects_zero(expr->arg[i])) return true;
    return false;
}

/* Returns whether C reads the number as floating point. */
static bool is_floating(const Expr *number) { return strpbrk(number->spelling, ".eEfF"); }

static const Expr *product(Arena *arena, const Expr *a, const Expr *b) {
    if (is_number(a, 0) || is_number(b, 1)) return a;
    if (is_number(b, 0) || is_number(a, 1)) return b;
    if (a->kind == EXPR_NEG) return expr_negative(arena, product(arena, a->arg[0], b));
    if (b->kind == EXPR_NEG) return expr_negative(arena, product(arena, a, b->arg[0]));
    if (selects_zero(a))
        return expr_select(arena, a->arg[0], product(arena, a->arg[1], b),
                           product(arena, a->arg[2], b));
    if (selects_zero(b))
        return expr_select(arena, b->arg[0], product(arena, a, b->arg[1]),
                           product(arena, a, b->arg[2]));
    if (b->kind == EXPR_DIV && is_number(b->arg[0], 1) && is_floating(b->arg[0])) // 1 / 2 is 0 in C
        return expr_binary(arena, EXPR_DIV, a, b->arg[1]);
    return expr_node(arena, EXPR_MUL, a, b, NULL);
}

/* Returns a / b in floating point: an integer numerator 1 becomes 1.0f, or C would truncate. */
static const Expr *quotient(Arena *arena, const Expr *a, const Expr *b) {
    if (is_number(a, 0) || is_number(b, 1)) return a;
    if (a->kind == EXPR_NUMBER && !is_floating(a))
        a = expr_number(arena, a->number, arena_format(arena, "%.1ff", a->number));
    if (a->kind == EXPR_NEG) return expr_negative(arena, quotient(arena, a->arg[0], b));
    return expr_node(arena, EXPR_DIV, a, b, NULL);
}

const Expr *expr_binary(Arena *arena, ExprKind kind, const Expr *a, const Expr *b) {
    switch (kind) {
    case EXPR_ADD: return sum(arena, a, b);
    case EXPR_SUB: return difference(arena, a, b);
    case EXPR_MUL: return product(arena, a, b);
    case EXPR_DIV: return quotient(arena, a, b);
    default: return expr_node(arena, kind, a, b, NULL);
    }
}

const Expr *expr_select(Arena *arena, const Expr *condition, const Expr *a, const Expr *b) {
    if (expr_equal(a, b)) return a;
    return expr_node(arena, EXPR_SELECT, condition, a, b);
}

const Expr *expr_call(Arena *arena, const char *name, const Expr *const *args, int count) {
    Expr *expr = arena_new(arena, Expr);
    *expr = (Expr){.kind = EXPR_CALL, .spelling = name, .arg_count = count};
    for (int i = 0; i < count; i++) expr->arg[i] = args[i];
    return expr;
}

/* ---- comparing, replacing and evaluating ---- */

bool expr_equal(const Expr *a, const Expr *b) {
    if (a == b) return true;
    if (a->kind != b->kind || a->arg_count != b->arg_count || a->index != b->index) return false;
    if (a->kind == EXPR_NUMBER && (a->number != b->number || strcmp(a->spelling, b->spelling)))
        return false;
    if (a->kind == EXPR_CALL && strcmp(a->spelling, b->spelling)) return false;
    for (int i = 0; i < a->arg_count; i++)
        if (!expr_equal(a->arg[i], b->arg[i])) return false;
    return true;
}

bool expr_mentions(const Expr *expr, ExprKind kind, int index) {
    if (expr->kind == kind && (index < 0 || expr->index == index)) return true;
    for (int i = 0; i < expr->arg_count; i++)
        if (expr_mentions(expr->arg[i], kind, index)) return true;
    return false;
}

const Expr *expr_mapped(Arena *arena, const Expr *expr, ExprLeafMap *leaf, void *context) {
    if (!expr->arg_count) return leaf(expr, context);
    Expr *copy = arena_copy(arena, expr, sizeof *expr);
    for (int i = 0; i < expr->arg_count; i++)
        copy->arg[i] = expr_mapped(arena, expr->arg[i], leaf, context);
    return copy->kind == EXPR_NEG ? expr_negative(arena, copy->arg[0]) : copy;
}

const Expr *expr_replace(Arena *arena, const Expr *expr, const Expr *pattern, const Expr *with) {
    if (expr_equal(expr, pattern)) return with;
    const Expr *arg[3] = {0};
    bool changed = false;
    for (int i = 0; i < expr->arg_count; i++) {
        arg[i] = expr_replace(arena, expr->arg[i], pattern, with);
        changed |= arg[i] != expr->arg[i];
    }
    if (!changed) return expr;
    Expr *copy = arena_copy(arena, expr, sizeof *expr);
    memcpy(copy->arg, arg, sizeof arg);
    return copy;
}

/* Computes a / b or a % b as C does. Returns false if C leaves the operation undefined. */
static bool divide(ExprKind kind, int64_t a, int64_t b, int64_t *value) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return false;
    *value = kind == EXPR_DIV ? a / b : a % b;
    return true;
}

static bool integer_binary(ExprKind kind, int64_t a, int64_t b, int64_t *value) {
    switch (kind) {
    case EXPR_ADD: return !__builtin_add_overflow(a, b, value);
    case EXPR_SUB: return !__builtin_sub_overflow(a, b, value);
    case EXPR_MUL: return !__builtin_mul_overflow(a, b, value);
    case EXPR_DIV:
    case EXPR_MOD: return divide(kind, a, b, value);
    case EXPR_LT: return *value = a < b, true;
    case EXPR_LE: return *value = a <= b, true;
    case EXPR_GT: return *value = a > b, true;
    case EXPR_GE: return *value = a >= b, true;
    case EXPR_EQ: return *value = a == b, true;
    case EXPR_NE: return *value = a != b, true;
    default: return false;
    }
}

static bool integer_leaf(const Expr *expr, const Attr *attrs, const int64_t *size, int64_t *value) {
    switch (expr->kind) {
    case EXPR_NUMBER: *value = (int64_t)expr->number; return (double)*value == expr->number;
    case EXPR_ATTR: *value = attrs[expr->index].i; return true;
    case EXPR_SIZE: *value = size ? size[expr->index] : -1; return *value >= 0;
    default: return false;
    }
}

bool expr_integer(const Expr *expr, const Attr *attrs, const int64_t *size, int64_t *value) {
    if (expr->arg_count == 0) return integer_leaf(expr, attrs, size, value);
    int64_t a, b;
    if (expr->kind == EXPR_CALL || !expr_integer(expr->arg[0], attrs, size, &a)) return false;
    if (expr->kind == EXPR_SELECT) return expr_integer(expr->arg[a ? 1 : 2], attrs, size, value);
    if (expr->kind == EXPR_NEG) return integer_binary(EXPR_SUB, 0, a, value);
    return expr_integer(expr->arg[1], attrs, size, &b) && integer_binary(expr->kind, a, b, value);
}

double expr_apply(ExprKind kind, double a, double b) {
    switch (kind) {
    case EXPR_ADD: return a + b;
    case EXPR_SUB: return a - b;
    case EXPR_MUL: return a * b;
    case EXPR_DIV: return a / b;
    case EXPR_MOD: return fmod(a, b);
    case EXPR_LT: return a < b;
    case EXPR_LE: return a <= b;
    case EXPR_GT: return a > b;
    case EXPR_GE: return a >= b;
    case EXPR_EQ: return a == b;
    case EXPR_NE: return a != b;
    default: BUG("an expression of kind %d has no two operands", (int)kind);
    }
}

static int collect_terms(const Expr *expr, bool negative, ExprTerm *terms, int count, int most) {
    switch (expr->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
        count = collect_terms(expr->arg[0], negative, terms, count, most);
        return collect_terms(expr->arg[1], negative != (expr->kind == EXPR_SUB), terms, count,
                             most);
    case EXPR_NEG: return collect_terms(expr->arg[0], !negative, terms, count, most);
    default:
        if (count < most) terms[count] = (ExprTerm){expr, negative};
        return count + 1;
    }
}

int expr_terms(const Expr *body, ExprTerm *terms, int most) {
    return collect_terms(body, false, terms, 0, most);
}

/* ---- printing ---- */

const ExprOperator expr_operators[EXPR_CALL + 1] = {
    [EXPR_EQ] = {"==", 2}, [EXPR_NE] = {"!=", 2}, [EXPR_LT] = {"<", 3},  [EXPR_LE] = {"<=", 3},
    [EXPR_GT] = {">", 3},  [EXPR_GE] = {">=", 3}, [EXPR_ADD] = {"+", 4}, [EXPR_SUB] = {"-", 4},
    [EXPR_MUL] = {"*", 5}, [EXPR_DIV] = {"/", 5}, [EXPR_MOD] = {"%", 5}};

/* Returns the precedence of an expression in C; higher binds more tightly. */
static int precedence(const Expr *expr) {
    bool minus = expr->kind == EXPR_NEG || (expr->kind == EXPR_NUMBER && expr->number < 0);
    int level = expr_operators[expr->kind].level;
    return level ? level : expr->kind == EXPR_SELECT ? 1 : minus ? 6 : 7;
}

static void print_at(Text *out, const Expr *expr, int least, ExprLeaf *leaf, void *context);

static void print_call(Text *out, const Expr *expr, ExprLeaf *leaf, void *context) {
    leaf(out, expr, context);
    text_string(out, "(");
    for (int i = 0; i < expr->arg_count; i++) {
        text_string(out, i ? ", " : "");
        print_at(out, expr->arg[i], 0, leaf, context);
    }
    text_string(out, ")");
}

static void print_bare(Text *out, const Expr *expr, ExprLeaf *leaf, void *context) {
    int level = precedence(expr);
    switch (expr->kind) {
    case EXPR_NUMBER: text_string(out, expr->spelling); return;
    case EXPR_CALL: print_call(out, expr, leaf, context); return;
    case EXPR_NEG:
        text_string(out, "-");
        print_at(out, expr->arg[0], level + 1, leaf, context);
        return;
    case EXPR_SELECT:
        print_at(out, expr->arg[0], level + 1, leaf, context);
        text_string(out, " ? ");
        print_at(out, expr->arg[1], level + 1, leaf, context);
        text_string(out, " : ");
        print_at(out, expr->arg[2], level + 1, leaf, context);
        return;
    case EXPR_ACCESS:
    case EXPR_RESULT:
    case EXPR_ATTR:
    case EXPR_SIZE: leaf(out, expr, context); return;
    default:
        print_at(out, expr->arg[0], level, leaf, context);
        text_print(out, " %s ", expr_operators[expr->kind].sign);
        print_at(out, expr->arg[1], level + 1, leaf, context);
    }
}

/* Prints an expression, in brackets if its precedence is below `least`. */
static void print_at(Text *out, const Expr *expr, int least, ExprLeaf *leaf, void *context) {
    bool brackets = precedence(expr) < least;
    text_string(out, brackets ? "(" : "");
    print_bare(out, expr, leaf, context);
    text_string(out, brackets ? ")" : "");
}

void expr_print(Text *out, const Expr *expr, ExprLeaf *leaf, void *context) {
    print_at(out, expr, 0, leaf, context);
}

int expr_operations(const Expr *expr) {
    int count = expr->arg_count > 0;
    for (int i = 0; i < expr->arg_count; i++) count += expr_operations(expr->arg[i]);
    return count;
}
