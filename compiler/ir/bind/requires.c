/* The clause `requires`: conditions on arguments and extents of a call, checked at binding.
 *
 *     slice(x, start, length) requires(start >= 0, start <= size(n) - length)
 *
 * slice(x, 6, 4) of a tensor of 8 rows is reported as an error of the user. */
#include "ir/bind/bind.h"

#include <math.h>

/* Returns whether an expression has a floating-point argument. */
static bool is_floating(const Binder *binder, const Expr *expr) {
    for (int a = 0; a < binder->def->attr_count; a++)
        if (opdef_attr_kind(binder->def, a) == PARAM_FLOAT && expr_mentions(expr, EXPR_ATTR, a))
            return true;
    return false;
}

/* Returns the value of an expression without calls; NaN if it cannot be evaluated. An expression
 * without floating-point arguments is evaluated in integers. */
static double number(const Binder *binder, const Expr *expr) {
    int64_t integer;
    if (expr->kind == EXPR_NUMBER) return expr->number;
    if (!is_floating(binder, expr))
        return expr_integer(expr, binder->attrs, binder->call.size, &integer) ? (double)integer
                                                                              : (double)NAN;
    if (expr->kind == EXPR_ATTR) return binder->attrs[expr->index].f;
    double a = number(binder, expr->arg[0]);
    if (expr->kind == EXPR_NEG) return -a;
    if (expr->kind == EXPR_SELECT) return number(binder, expr->arg[a != 0 ? 1 : 2]);
    return expr_apply(expr->kind, a, number(binder, expr->arg[1]));
}

const char *bind_violated(const BindCall *call) {
    const Binder *binder = call->context;
    const Requirements *requirements = &binder->rule->requirements;
    for (int i = 0; i < requirements->count; i++) {
        double holds = number(binder, requirements->at[i].condition);
        if (holds == 0 || isnan(holds)) return requirements->at[i].text;
    }
    return NULL;
}
