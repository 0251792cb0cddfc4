/* Turns a call's arguments into numbers of a rule. */
#include "passes/arguments.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns a non-negative floating-point number, spelled so that C reads back the same value. */
static const Expr *float_number(Arena *arena, double value, bool wide) {
    const Expr *zero = expr_number(arena, 0, NULL),
               *minus_one = expr_negative(arena, expr_number(arena, 1, NULL));
    if (isinf(value))
        return expr_negative(arena, expr_call(arena, wide ? "log" : "logf", &zero, 1));
    if (isnan(value)) return expr_call(arena, wide ? "sqrt" : "sqrtf", &minus_one, 1);
    char *digits = arena_format(arena, wide ? "%.17g" : "%.9g", value);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    return expr_number(arena, strtod(digits, NULL),
                       arena_format(arena, "%s%s%s", digits, point, wide ? "" : "f"));
}

const Expr *argument_number(Arena *arena, const Op *op, int attr) {
    bool floating = opdef_attr_kind(op->def, attr) == PARAM_FLOAT;
    double value = floating ? op->attrs[attr].f : (double)op->attrs[attr].i;
    const Expr *number =
        floating ? float_number(arena, fabs(value), op->results[0]->type.dtype == DTYPE_F64)
                 : expr_number(arena, fabs(value), NULL);
    return value < 0 ? expr_negative(arena, number) : number;
}
