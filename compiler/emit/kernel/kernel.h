/* The functions that role programs call: one for each operator and local shape, shared by all roles
 * and models of a unit. This folder writes bodies that are the same for all backends; loops.h and
 * the backend write all other bodies. */
#pragma once

#include "emit/kernel/local.h"

typedef struct Kernel {
    const char *name;
    const char *opening;   // beginning of a call: "gpt_add_3(", "gpt_softmax_4(r, "
    const char *prototype; // "void gpt_add_3(void *y, void *x, void *z)"
    bool ranked;           // first parameter: the worker (ht_worker); last: the place in the source
    bool numbered;         // a parameter is the device's row of numbers
} Kernel;

/* Returns the function for an operator, and adds it to the kernels' file when it is new. */
const Kernel *kernel_for(struct RoleWriter *writer, const LocalOp *local);

/* ---- bodies that all backends share: call.c, product.c ----
 *
 * Parameters of the function are the tensors' names and `at` for the device's numbers. A function
 * that runs a C kernel also has `r` (the worker) and `where` (the place in the source). */

/* Appends a call of a C kernel on views. `update`: the operator belongs to the update section,
 * whose kernels read the hyperparameters of the step. */
void emit_call(Text *out, const LocalOp *local, const char *kernel, bool update);

/* Appends the body for an empty factor: results are the `plus` operand or the identity. */
void emit_identity(Text *out, const LocalOp *local);

/* A body that ht_product of <hetu/product.h> computes. Tensors are given by index; -1: absent. */
typedef struct Product {
    int x, w, bias, y;
    int aux;           // the result that is the product before the epilogue
    bool bias_flagged; // the bias is added only where at[0] is not 0
    const Expr *scale; // scale of the product; NULL: none
} Product;

/* Returns whether ht_product can compute the body; fills in `product` then. */
bool product_of(const LocalOp *local, Product *product);
void emit_product(Text *out, const LocalOp *local, const Product *product);
