#include "passes/arguments.h"

#include <math.h>
#include <string.h>

/* A floating-point argument as a number that C reads back. */
static const Expr *float_number(Arena *arena, double value, bool wide)
{
    const Expr *zero = expr_number(arena, 0, NULL);
    if (isinf(value)) {
        const Expr *logarithm = expr_call(arena, wide ? "log" : "logf", &zero, 1);
        return value < 0 ? logarithm : expr_negative(arena, logarithm);
    }
    if (isnan(value))
        return expr_call(arena, wide ? "sqrt" : "sqrtf", (const Expr *[]){expr_number(arena, -1, NULL)}, 1);
    char *digits = arena_format(arena, wide ? "%.17g" : "%.9g", value);
    const char *point = strpbrk(digits, ".e") ? "" : ".0";
    return expr_number(arena, value, arena_format(arena, "%s%s%s", digits, point, wide ? "" : "f"));
}

const Expr *argument_number(Arena *arena, const Op *op, int attr)
{
    if (opdef_attr_kind(op->def, attr) == PARAM_FLOAT)
        return float_number(arena, op->attrs[attr].f, op->results[0]->type.dtype == DTYPE_F64);
    return expr_number(arena, (double)op->attrs[attr].i, NULL);
}
