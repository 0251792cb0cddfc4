/* Bodies that all back ends have alike: the statements of a function whose parameters are the
 * tensors' names, `at` for the device's numbers, and where a C kernel is run `r` and `where`. Loops
 * are a back end's (backend.h). */
#ifndef EMIT_KERNEL_BODY_H
#define EMIT_KERNEL_BODY_H

#include "emit/kernel/local.h"

/* Runs a C kernel on views; `update`: one of the update section, which is told the optimizers'
 * numbers of the step. */
void emit_call(Text *out, const LocalOp *local, const char *kernel, bool update);

/* What a C kernel leaves where a contracted factor is empty. */
void emit_identity(Text *out, const LocalOp *local);

/* A body that ht_product computes: operands x and w, the bias or -1, a factor or NULL; the result,
 * and the one that takes what is in front of an epilogue, or -1. */
typedef struct Product {
    int x, w, bias, y, aux;
    bool bias_flagged; // added only where at[0] says so
    const Expr *scale;
} Product;
bool product_of(const LocalOp *local, Product *product);
void emit_product(Text *out, const LocalOp *local, const Product *product);

#endif
