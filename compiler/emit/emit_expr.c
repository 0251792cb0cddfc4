/* Expressions of bodies as C. */
#include "emit/emitter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* How tightly C binds: 1 for ?:, up to 8 for what needs no brackets. */
static int precedence(ExprKind kind)
{
    switch (kind) {
    case EXPR_SELECT: return 1;
    case EXPR_EQ:
    case EXPR_NE: return 2;
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE: return 3;
    case EXPR_ADD:
    case EXPR_SUB: return 4;
    case EXPR_MUL:
    case EXPR_DIV:
    case EXPR_MOD: return 5;
    case EXPR_NEG: return 6;
    default: return 8;
    }
}

static const char *spelling(ExprKind kind)
{
    switch (kind) {
    case EXPR_EQ: return " == ";
    case EXPR_NE: return " != ";
    case EXPR_LT: return " < ";
    case EXPR_LE: return " <= ";
    case EXPR_GT: return " > ";
    case EXPR_GE: return " >= ";
    case EXPR_ADD: return " + ";
    case EXPR_SUB: return " - ";
    case EXPR_MUL: return " * ";
    case EXPR_DIV: return " / ";
    case EXPR_MOD: return " % ";
    default: BUG("no binary operator: %d", kind);
    }
}

static void emit_integer(Text *out, int64_t value)
{
    bool wide = value > INT32_MAX || value < -INT32_MAX;
    text_print(out, value < 0 ? "(%lld%s)" : "%lld%s", (long long)value, wide ? "L" : "");
}

static void emit_float(Text *out, double value, DType dtype)
{
    if (isnan(value) || isinf(value)) {
        text_string(out, isnan(value) ? "NAN" : value < 0 ? "(-INFINITY)" : "INFINITY");
        return;
    }
    char digits[64];
    snprintf(digits, sizeof digits, dtype == DTYPE_F64 ? "%.17g" : "%.9g", value);
    bool point = strpbrk(digits, ".e");
    text_print(out, value < 0 ? "(%s%s%s)" : "%s%s%s", digits, point ? "" : ".0", dtype == DTYPE_F64 ? "" : "f");
}

/* The parameter that attribute `index` is. */
static ParamKind attr_kind(const OpDef *def, int index)
{
    for (int p = 0, a = 0; p < def->param_count; p++)
        if (def->params[p].kind != PARAM_TENSOR && def->params[p].kind != PARAM_TENSORS && a++ == index)
            return def->params[p].kind;
    BUG("%s has no argument %d", def->name, index);
}

static void emit_attr(Text *out, const LocalOp *local, int index)
{
    const Attr *attr = &local->op->attrs[index];
    switch (attr_kind(local->op->def, index)) {
    case PARAM_FLOAT: emit_float(out, attr->f, local->results[0].value->type.dtype); break;
    case PARAM_INT:
    case PARAM_DTYPE: emit_integer(out, attr->i); break;
    default: BUG("%s: a shape in an expression", local->op->def->name);
    }
}

static void emit_size(Text *out, const LocalOp *local, int factor)
{
    int64_t size = 1;
    for (int f = 0; f < local->factor_count; f++)
        if (local->op->binding->factors[f].factor == factor)
            size *= local->op->binding->factors[f].extent;
    text_print(out, "%lldL", (long long)size);
}

static void emit_at(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access, void *context, int binding)
{
    bool brackets = precedence(expr->kind) < binding;
    text_string(out, brackets ? "(" : "");
    emit_expr(out, local, expr, access, context);
    text_string(out, brackets ? ")" : "");
}

static void emit_arguments(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access, void *context)
{
    text_print(out, "%s(", backend_function(local->backend, expr->spelling));
    for (int a = 0; a < expr->arg_count; a++) {
        text_string(out, a ? ", " : "");
        emit_expr(out, local, expr->arg[a], access, context);
    }
    text_string(out, ")");
}

void emit_expr(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access, void *context)
{
    int mine = precedence(expr->kind);
    switch (expr->kind) {
    case EXPR_NUMBER: text_string(out, expr->spelling); break;
    case EXPR_ACCESS: access(out, local, operand_of(local, expr->index), context); break;
    case EXPR_ATTR: emit_attr(out, local, expr->index); break;
    case EXPR_SIZE: emit_size(out, local, expr->index); break;
    case EXPR_RESULT: access(out, local, -1 - expr->index, context); break;
    case EXPR_NEG:
        text_string(out, "-");
        emit_at(out, local, expr->arg[0], access, context, mine + 1);
        break;
    case EXPR_SELECT:
        emit_at(out, local, expr->arg[0], access, context, mine + 1);
        text_string(out, " ? ");
        emit_at(out, local, expr->arg[1], access, context, mine + 1);
        text_string(out, " : ");
        emit_at(out, local, expr->arg[2], access, context, mine + 1);
        break;
    case EXPR_CALL: emit_arguments(out, local, expr, access, context); break;
    default:
        emit_at(out, local, expr->arg[0], access, context, mine);
        text_string(out, spelling(expr->kind));
        emit_at(out, local, expr->arg[1], access, context, mine + 1);
    }
}
