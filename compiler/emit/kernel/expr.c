/* Writes an expression of a rule as C. */
#include "emit/kernel/local.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void emit_integer(Text *out, int64_t value) {
    bool wide = value > INT32_MAX || value < -INT32_MAX;
    text_print(out, value < 0 ? "(%lld%s)" : "%lld%s", (long long)value, wide ? "L" : "");
}

static void emit_float(Text *out, double value, bool wide) {
    if (isnan(value) || isinf(value)) {
        text_string(out, isnan(value) ? "NAN" : value < 0 ? "(-INFINITY)" : "INFINITY");
        return;
    }
    char digits[64];
    snprintf(digits, sizeof digits, wide ? "%.17g" : "%.9g", value);
    bool point = strpbrk(digits, ".e");
    text_print(out, value < 0 ? "(%s%s%s)" : "%s%s%s", digits, point ? "" : ".0", wide ? "" : "f");
}

/* Returns whether the operator computes in f64: an operand or the first result is f64, or no tensor
 * is floating point. f32 may not represent integer constants exactly. */
static bool is_wide(const LocalOp *local) {
    bool floating = false;
    for (int t = 0; t < local->tensor_count; t++) {
        const Value *value = local->tensors[t].value;
        if (value && (!t || t >= local->result_count) && value->type.dtype == DTYPE_F64)
            return true;
        floating |= value && dtype_is_float(value->type.dtype);
    }
    return !floating;
}

static void emit_attr(Text *out, const LocalOp *local, int index) {
    const Attr *attr = &local->op->attrs[index];
    switch (opdef_attr_kind(local->op->def, index)) {
    case PARAM_FLOAT: emit_float(out, attr->f, is_wide(local)); break;
    case PARAM_INT:
    case PARAM_DTYPE: emit_integer(out, attr->i); break;
    default: BUG("%s: a shape in an expression", local->op->def->name);
    }
}

static void emit_size(Text *out, const LocalOp *local, int factor) {
    int64_t size = 1;
    for (int f = 0; f < local->factor_count; f++)
        if (local->op->binding->factors[f].factor == factor)
            size *= local->op->binding->factors[f].extent;
    text_print(out, "%lldL", (long long)size);
}

/* Returns whether all results are bf16; absent ones do not count. */
static bool is_half(const LocalOp *local) {
    for (int t = 0; t < local->result_count; t++)
        if (local->tensors[t].value && !tensor_is_half(&local->tensors[t])) return false;
    return true;
}

/* The context with which leaves of an expression are printed. */
typedef struct Leaves {
    const LocalOp *local;
    AccessWriter *access;
    void *context;
} Leaves;

/* Appends a leaf. Implements ExprLeaf; `context` is a Leaves. */
static void emit_leaf(Text *out, const Expr *leaf, void *context) {
    const Leaves *leaves = context;
    switch (leaf->kind) {
    case EXPR_ACCESS:
        leaves->access(out, leaves->local, operand_of(leaves->local, leaf->index), leaves->context);
        break;
    case EXPR_RESULT: leaves->access(out, leaves->local, -1 - leaf->index, leaves->context); break;
    case EXPR_ATTR: emit_attr(out, leaves->local, leaf->index); break;
    case EXPR_SIZE: emit_size(out, leaves->local, leaf->index); break;
    case EXPR_CALL:
        text_string(
            out, backend_function(leaves->local->backend, leaf->spelling, is_half(leaves->local)));
        break;
    default: BUG("no leaf: %d", leaf->kind);
    }
}

void emit_expr(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access,
               void *context) {
    if (is_wide(local)) expr = expr_widened(out->arena, expr);
    expr_print(out, expr, emit_leaf, &(Leaves){local, access, context});
}
