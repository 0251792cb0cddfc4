/* An operator on one device: the local extents of its tensors, and the terms that its body adds up.
 *
 *     linear, x (8, 128), w (512, 128), w split over 2 devices
 *     ->  local w (256, 128), y (8, 256); factors b = 8, o = 256, i = 128; one term x * w over i
 */
#pragma once

#include "emit/backend.h"
#include "ir/module.h"

enum { EMIT_MAX_TENSORS = IR_MAX_RESULTS + IR_MAX_OPERANDS };

struct RoleWriter;

/* A tensor of an operator on one device. */
typedef struct Tensor {
    const Value *value; // NULL: an optional operand that is absent
    const Access *access;
    const BoundAccess *bound;
    const char *name;            // name in emitted C
    bool empty;                  // this device holds none of its elements
    int64_t extent[IR_MAX_RANK]; // local extents, by dimension
    int64_t pitch;               // elements from row start to row start; 0: no subview
} Tensor;

/* One of the terms that a body adds up. */
typedef struct Term {
    const Expr *expr;
    bool minus;
    uint32_t contracted; // set of bound factors over which the term is summed
    bool flagged;        // added only on devices whose number (flag) is not 0
} Term;

typedef struct LocalOp {
    Module *module;
    const Backend *backend;
    const Op *op;
    int device; // the first device of the role
    const Rule *rule;
    int result_count, operand_count, tensor_count;
    Tensor tensors[EMIT_MAX_TENSORS]; // the results, then the operands
    Tensor *results, *operands;       // point into tensors
    int factor_count;
    int64_t extent[IR_MAX_FACTORS]; // local extents, by bound factor
    uint32_t contracted;            // set of bound factors that no result has
    // column sum of an operand that the product computes as well (ir/analysis/side_reduction.h)
    const Op *sum; // NULL: none
    int summed;    // index of the operand that is summed
    Tensor sums;   // the sum's result
    int term_count;
    Term *terms; // terms of a RULE_BODY, or of the product before an epilogue
} LocalOp;

/* Fills in `local`. Returns false after an error: a tensor that lies in several boxes. */
bool local_op(LocalOp *local, struct RoleWriter *writer, const Op *op);

/* Makes a product compute an operand's column sum as well, if the product's kernel can. */
void local_take_sum(LocalOp *local, struct RoleWriter *writer);

/* Returns whether every result is empty on this device. */
bool local_nothing(const LocalOp *local);

/* Returns whether a factor, not a variadic tensor's own, is empty: results are then identities. */
bool local_empty(const LocalOp *local);

/* Returns the number of a tensor's elements on this device. */
int64_t tensor_elements(const Tensor *tensor);

/* Returns how far apart elements lie along a bound factor; 0 where the tensor lacks the factor. */
int64_t tensor_stride(const Tensor *tensor, int factor);

/* Returns whether a tensor is present and has bf16 elements, which kernels convert to f32. */
bool tensor_is_half(const Tensor *tensor);

/* Returns the index of the call's operand for the rule's operand `index`; -1 when it is absent. */
int operand_of(const LocalOp *local, int index);

/* Returns the set of operands that an expression reads. Sets *absent if it reads an absent one. */
uint64_t expr_operands(const LocalOp *local, const Expr *expr, bool *absent);

/* Returns whether `value`, a tensor of the operator, is the part of an input or of collected rows
 * that belongs to one micro-batch; such a part may begin at any element. */
bool value_turns(const Module *module, const Op *op, const Value *value);

/* ---- expressions as C: expr.c ---- */

/* Appends an operand as C; if `operand` is negative, value -1 - `operand` of the equations. */
typedef void AccessWriter(Text *out, const LocalOp *local, int operand, void *context);

/* Appends an expression of the rule as C; `access` writes its operands. */
void emit_expr(Text *out, const LocalOp *local, const Expr *expr, AccessWriter *access,
               void *context);

/* ---- numbers that differ between the devices of a role: numbers.c ---- */

/* Marks the terms that some device of the role leaves out, since another one adds the same term. */
void flag_terms(LocalOp *local, struct RoleWriter *writer);

/* Returns whether a kernel reads the offset of a dimension of its view. */
bool written_has_offset(const LocalOp *local, const Tensor *tensor, int written);

/* Returns whether a dimension of a view may be zigzag: the kernel then gets two ranges. */
bool written_is_zigzag(const Tensor *tensor, int written);

/* Writes a dimension's first two distinct ranges to `ranges`; returns how many the region has. */
int region_ranges(const Region *region, int dim, Range ranges[2]);

/* Returns the column of the device's row at which the numbers of this operator begin: the flags of
 * terms, then the offsets of views. Adds new columns. Returns -1 if the operator reads none. */
int number_column(struct RoleWriter *writer, const LocalOp *local);
