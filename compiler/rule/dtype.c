/* Element types, and the element types of operators and expressions. Nothing is promoted: binding
 * refuses operands of different types (check_alike of binding/binding.c). */
#include "rule/rule.h"

#include "binding/binding.h"

#include <string.h>

const char *dtype_name(DType dtype) { return dtype_word((ht_dtype)dtype); }

int dtype_size(DType dtype) {
    static const int sizes[] = {
        [DTYPE_F32] = 4, [DTYPE_BF16] = 2, [DTYPE_F64] = 8, [DTYPE_I32] = 4, [DTYPE_I64] = 8};
    return sizes[dtype];
}

DType dtype_wide(DType dtype) { return (DType)dtype_sum((ht_dtype)dtype); }

bool dtype_is_float(DType dtype) {
    return dtype == DTYPE_F32 || dtype == DTYPE_BF16 || dtype == DTYPE_F64;
}

static bool is_integral_number(const Expr *number) {
    return !number->spelling || strspn(number->spelling, "0123456789") == strlen(number->spelling);
}

/* Returns whether an expression of integers has an integer value: no division, call, or float. */
static bool is_integral(const OpDef *def, const Expr *expr) {
    switch (expr->kind) {
    case EXPR_NUMBER: return is_integral_number(expr);
    case EXPR_ATTR: return opdef_attr_kind(def, expr->index) != PARAM_FLOAT;
    case EXPR_DIV:
    case EXPR_CALL: return false;
    case EXPR_SELECT: return is_integral(def, expr->arg[1]) && is_integral(def, expr->arg[2]);
    default: break;
    }
    for (int a = 0; a < expr->arg_count; a++)
        if (!is_integral(def, expr->arg[a])) return false;
    return true;
}

bool opdef_is_integral(const OpDef *def) {
    RuleKind kind = def->rule->kind;
    return kind == RULE_CALL || kind == RULE_VIEW ||
           (kind == RULE_BODY && is_integral(def, def->rule->body));
}

const Expr *opdef_float_in(const OpDef *def, const Expr *expr, uint64_t integers) {
    const Expr *found = NULL;
    switch (expr->kind) {
    case EXPR_NUMBER: return strpbrk(expr->spelling, ".eEfF") ? expr : NULL;
    case EXPR_CALL: return expr;
    case EXPR_ATTR: return opdef_attr_kind(def, expr->index) == PARAM_FLOAT ? expr : NULL;
    case EXPR_ACCESS: return integers >> expr->index & 1 ? NULL : expr;
    default:
        for (int i = expr->kind == EXPR_SELECT;
             !found && i < expr->arg_count && (expr->kind < EXPR_LT || expr->kind > EXPR_NE); i++)
            found = opdef_float_in(def, expr->arg[i], integers);
        return found;
    }
}

/* Returns a floating-point part of a remainder in the expression; NULL: there is none. */
static const Expr *float_remainder(const OpDef *def, const Expr *expr, uint64_t integers) {
    const Expr *found = NULL;
    for (int i = 0; !found && i < expr->arg_count; i++)
        found = expr->kind == EXPR_MOD ? opdef_float_in(def, expr->arg[i], integers) : NULL;
    for (int i = 0; !found && i < expr->arg_count; i++)
        found = float_remainder(def, expr->arg[i], integers);
    return found;
}

const char *opdef_remainder(Arena *arena, const OpDef *def, uint64_t integers) {
    const Expr *found =
        def->rule->kind == RULE_BODY ? float_remainder(def, def->rule->body, integers) : NULL;
    for (int e = 0; !found && e < def->rule->equations.count; e++)
        found = float_remainder(def, def->rule->equations.at[e].expr, integers);
    if (!found) return NULL;
    return arena_format(arena,
                        "%% takes integers, and %s is floating-point; write x - y * floorf(x / y)",
                        found->kind == EXPR_ACCESS ? def->rule->operands[found->index].name
                        : found->spelling          ? found->spelling
                                                   : "an argument");
}

bool rule_of_one_type(const Rule *rule) {
    return rule->kind == RULE_CALL ? rule->call.types != 0
                                   : rule->results[0].element.kind == ELEMENT_FOLLOWS;
}
