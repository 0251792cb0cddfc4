/* An expression of a rule as C. */
#ifndef EMIT_KERNEL_EXPR_H
#define EMIT_KERNEL_EXPR_H

#include "emit/kernel/local.h"
#include "rule/expr.h"

/* Appends the text of an operand, or of value -1 - `operand` of equations. */
typedef void AccessWriter(Text *out, const LocalOp *local, int operand, void *context);

void emit_expr(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access,
               void *context);

#endif
